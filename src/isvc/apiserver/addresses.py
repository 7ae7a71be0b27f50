"""Cluster IPs and node ports of Services.

The store knows which are taken: both tables are rebuilt from the Services at start and follow every committed change.
An address given to a create under way is reserved until the write has settled.
"""

from __future__ import annotations

import ipaddress
import random
from typing import Any

from isvc.apiserver.field_errors import invalid
from isvc.apiserver.resources.strategy import FieldError
from isvc.apiserver.store.entry import DELETED, Event
from isvc.apiserver.store.store import Store
from isvc.kube.errors import InternalError
from isvc.kube.gourl import parse_address
from isvc.kube.objects import Object, dig

SERVICE_NETWORK = "10.96.0.0/16"
NODE_PORTS = range(30000, 32768)
SERVICES = "services"


class Unassignable(Exception):
    """A Service asks for an address, a port or an IP family that it cannot have."""

    def __init__(self, error: FieldError) -> None:
        super().__init__(str(error))
        self.error = error


class ServiceAddresses:
    def __init__(self, network: str = SERVICE_NETWORK) -> None:
        self._network = ipaddress.IPv4Network(network)
        self._held: dict[tuple[str, str], set[str | int]] = {}
        self._count: dict[str | int, int] = {}
        self._reserved: set[str | int] = {self.kubernetes}

    @property
    def kubernetes(self) -> str:
        """Returns the address of the API server's own Service."""
        return str(self._network[1])

    def follow(self, store: Store) -> None:
        for entry in store.list(SERVICES):
            self._hold((entry.namespace, entry.name), allocations_of(entry.parse()))
        store.subscribe(SERVICES, self._on_event)

    def assign(self, new: Object, old: Object | None, dry_run: bool = False) -> set[str | int]:
        """Fills in what a Service is to get, or raises Unassignable; the result goes to `settle` after the write."""
        spec: dict[str, Any] = new.setdefault("spec", {})
        before = allocations_of(new)
        if old is not None:
            _keep(spec, old.get("spec") or {})
        asked = allocations_of(new) - (allocations_of(old) if old else set())
        kind = spec.get("type", "ClusterIP")
        if kind == "ExternalName":
            for field in ("clusterIP", "clusterIPs"):
                spec.pop(field, None)
        else:
            _check_families(spec)
            self._check_ip(spec, asked)
            self._assign_ip(spec)
        if kind in ("NodePort", "LoadBalancer"):
            self._check_ports(spec, asked, dry_run)
            self._assign_ports(spec)
        fresh = (allocations_of(new) - before) | asked
        self._reserved |= fresh
        return fresh

    def settle(self, reserved: set[str | int]) -> None:
        self._reserved -= reserved

    def _check_ip(self, spec: dict[str, Any], asked: set[str | int]) -> None:
        address = spec.get("clusterIP")
        wanted = parse_address(str(address))
        if address not in asked or wanted is None:  # which validation refuses
            return
        if wanted.version == 6:
            raise Unassignable(invalid("spec.clusterIPs[0]", [address], "IPv6 is not configured on this cluster"))
        why = f"failed to allocate IP {address}: "
        if wanted not in self._network:
            why += "the provided network does not match the current range"
        elif address in self._count or address in self._reserved - {self.kubernetes}:
            why += "provided IP is already allocated"
        else:
            return
        raise Unassignable(invalid("spec.clusterIPs", [address], why))

    def _check_ports(self, spec: dict[str, Any], asked: set[str | int], dry_run: bool) -> None:
        for index, port in enumerate(spec.get("ports") or ()):
            number = port.get("nodePort")
            if not number or number not in asked:
                continue
            path, last = f"spec.ports[{index}].nodePort", NODE_PORTS.stop - 1
            if number not in NODE_PORTS and not dry_run:  # kube-apiserver does not look, either
                valid = f"The range of valid ports is {NODE_PORTS.start}-{last}"
                raise Unassignable(invalid(path, number, f"provided port is not in the valid range. {valid}"))
            if self._is_taken(number):
                raise Unassignable(invalid(path, number, "provided port is already allocated"))

    def _is_taken(self, item: str | int) -> bool:
        return item in self._count or item in self._reserved

    def _assign_ip(self, spec: dict[str, Any]) -> None:
        if not spec.get("clusterIP"):
            hosts = self._network.num_addresses - 2
            start = random.randrange(min(256, hosts // 2), hosts)  # noqa: S311
            spec["clusterIP"] = self._free(str(self._network[1 + (start + i) % hosts]) for i in range(hosts))
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        anywhere = spec["clusterIP"] == "None" and not spec.get("selector")
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if anywhere else ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "RequireDualStack" if anywhere else "SingleStack")

    def _assign_ports(self, spec: dict[str, Any]) -> None:
        if spec.get("allocateLoadBalancerNodePorts") is False:
            return
        for port in spec.get("ports") or ():
            if not port.get("nodePort"):
                port["nodePort"] = self._free(random.sample(NODE_PORTS, len(NODE_PORTS)))
                self._reserved.add(port["nodePort"])

    def _free(self, candidates: Any) -> Any:
        for candidate in candidates:
            if not self._is_taken(candidate):
                return candidate
        raise InternalError("no address or port is left for this Service")

    def _on_event(self, event: Event) -> None:
        key = (event.entry.namespace, event.entry.name)
        self._hold(key, set() if event.type == DELETED else allocations_of(event.entry.parse()))

    def _hold(self, key: tuple[str, str], taken: set[str | int]) -> None:
        for item in self._held.pop(key, ()):
            self._count[item] -= 1
            if not self._count[item]:
                del self._count[item]
        if taken:
            self._held[key] = taken
        for item in taken:
            self._count[item] = self._count.get(item, 0) + 1


def allocations_of(service: Object) -> set[str | int]:
    """Returns the address and the node ports that a Service has."""
    address = dig(service, "spec", "clusterIP")
    taken: set[str | int] = {address} if address and address != "None" else set()
    return taken | {port["nodePort"] for port in dig(service, "spec", "ports") or () if port.get("nodePort")}


def fixed_address_errors(new: Object, old: Object) -> list[FieldError]:
    """Checks that a Service keeps its address for as long as it has one."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if "ExternalName" in (before.get("type"), after.get("type")) or before.get("clusterIP") == after.get("clusterIP"):
        return []
    return [invalid("spec.clusterIPs[0]", [after.get("clusterIP")], "may not change once set")]


def _check_families(spec: dict[str, Any]) -> None:
    """Checks that only Services without address and selector name another family than the one there is."""
    if spec.get("clusterIP") == "None" and not spec.get("selector"):
        return
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy") or "SingleStack"
    if len(families) > 1 and policy == "SingleStack":
        why = "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"
        raise Unassignable(invalid("spec.ipFamilyPolicy", policy, why))
    if policy == "RequireDualStack":
        why = "this cluster is not configured for dual-stack services"
        raise Unassignable(invalid("spec.ipFamilyPolicy", policy, why))
    for index, family in enumerate(families):
        if family == "IPv6":
            raise Unassignable(invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))


def _keep(spec: dict[str, Any], old: dict[str, Any]) -> None:
    """Keeps the addresses that a PUT does not mention, as long as the type still has them."""
    if spec.get("type", "ClusterIP") == "ExternalName" or old.get("type", "ClusterIP") == "ExternalName":
        return
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "healthCheckNodePort"):
        if not spec.get(field) and old.get(field):
            spec[field] = old[field]
    if spec.get("type") not in ("NodePort", "LoadBalancer"):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
        return
    ports = {(port.get("port"), port.get("protocol", "TCP")): port.get("nodePort") for port in old.get("ports") or ()}
    for port in spec.get("ports") or ():
        kept = ports.get((port.get("port"), port.get("protocol", "TCP")))
        if not port.get("nodePort") and kept:
            port["nodePort"] = kept

"""The backends that there are, as clusters of Envoy's: made anew for a Service or InferencePool that has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from isvc.kube.objects import Key, Object
from isvc.kube.resource import ENDPOINT_SLICES, PODS, SERVICES, Resource
from isvc.local.gateway.endpoints import pools
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.endpoints.services import SERVICE_OF_SLICE, Port, ports, slice_endpoints
from isvc.local.gateway.envoy.clusters import cluster
from isvc.local.gateway.envoy.routes import Destination
from isvc.local.gateway.envoy.types import OWN_CLUSTER, REFUSED, Json
from isvc.local.gateway.routes.rules import Backend, Target
from isvc.toolkit.cache import Reader

_FAILS_OPEN: Final = "FailOpen"
_FAILS_CLOSED: Final = "FailClose"


@dataclass(frozen=True, slots=True)
class Members:
    """The endpoints of a cluster: those that take requests, and those that do not, or no longer."""

    ready: tuple[Endpoint, ...] = ()
    others: tuple[Endpoint, ...] = ()
    come_back: bool = False  # whether there will be some again where there are none


class Known(NamedTuple):
    """A cluster, as it was last seen."""

    definition: Json
    members: Members


@dataclass(slots=True)
class Changes:
    """What is different since the last look; what has become empty is sent last, when no route leads there directly."""

    clusters: dict[str, Json] = field(default_factory=dict)
    members: dict[str, Members] = field(default_factory=dict)
    emptied: dict[str, Members] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    targets: set[Target] = field(default_factory=set)  # whose destinations are others now


class Backends:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[Target, dict[str, Known]] = {}
        self._ports: dict[Key, tuple[Port, ...]] = {}
        self._due: set[Target] = set()
        self.is_limited: Callable[[Key], bool] = lambda key: False  # whether pods take only so many requests at a time
        self.comes_back: Callable[[Target], bool] = lambda target: False  # whether requests bring pods

    def mark_changed(self, target: Target) -> None:
        """Notes that something about a Service or pool is another; a Service may also be the picker of pools."""
        self._due.add(target)
        for resource in pools.POOLS_BY_GROUP.values() if target.pool is None else ():
            picked = self._reader.by_index(resource, pools.PICKER_OF_POOL, str(target.key))
            self._due |= {Target(Key.of(pool), resource) for pool in picked}

    def has(self, target: Target) -> bool:
        """Returns whether there is such a Service or InferencePool."""
        return target in self._known

    def ports(self, key: Key) -> tuple[Port, ...] | None:
        """Returns the ports of a Service; None if there is no such Service."""
        return self._ports.get(key)

    def members(self, name: str) -> Members:
        """Returns the endpoints of a cluster."""
        known = self._known.get(cluster_target(name)[0], {}).get(name)
        return known.members if known is not None else Members()

    def clusters_with(self, endpoint: Endpoint) -> list[str]:
        """Returns the clusters that an endpoint is in, whether it takes requests or not."""
        known = (found for clusters in self._known.values() for found in clusters.items())
        return [name for name, each in known if endpoint in (*each.members.ready, *each.members.others)]

    def destination(self, backend: Backend) -> Destination:
        """Returns how a backend is reached. Envoy asks about requests that it cannot take to an endpoint by itself."""
        if backend.refusal:
            return Destination(f"{REFUSED}{backend.refusal}", OWN_CLUSTER)
        target = backend.target
        clusters = self._known.get(target, {})
        if backend.pool is not None:
            return self._pool_destination(pool_cluster(target), clusters)
        name = self._cluster_of(backend)
        known = clusters.get(name)
        is_direct = known is not None and known.members.ready and not self.is_limited(target.key)
        return Destination(name, "" if is_direct else OWN_CLUSTER, comes_back=self.comes_back(target))

    def _pool_destination(self, name: str, clusters: Mapping[str, Known]) -> Destination:
        """Returns how a pool is reached: its picker says where to, else the gateway, which also stands in for one."""
        for picker, known in clusters.items():
            fails_open = picker.endswith(_FAILS_OPEN)
            if picker != name and (known.members.ready or not fails_open):
                return Destination(name, picker, picks=True, fails_open=fails_open)
        comes_back = self.comes_back(cluster_target(name)[0])
        return Destination(name, OWN_CLUSTER, picks=name in clusters, comes_back=comes_back)

    def why_unavailable(self, key: Key, port: int | str) -> str:
        """Returns why no request can go to a Service's port; nothing if one can."""
        known = self._ports.get(key)
        if known is None:
            return f"Service {key} does not exist"
        if port not in {each for found in known for each in (found.number, found.name)}:
            numbers = ", ".join(str(each.number) for each in known)
            return f"Service {key} has no port {port}, only {numbers or 'none'}"
        members = self.members(service_cluster(key, port))
        if members.ready:
            return ""
        count = len(members.others)
        found = f"{count} endpoint{'s' if count != 1 else ''}, none ready" if count else "no endpoints"
        return f"Service {key} has {found}"

    def _cluster_of(self, backend: Backend) -> str:
        key = Key(backend.namespace, backend.service)
        named = (port.number for port in self._ports.get(key, ()) if backend.port in (port.number, port.name))
        return service_cluster(key, next(named, backend.port))

    def update(self) -> Changes:
        """Looks at what has changed."""
        changes = Changes()
        due, self._due = self._due, set()
        for target in due:
            before, after = self._known.get(target, {}), self._look(target)
            if after:
                self._known[target] = after
            else:
                self._known.pop(target, None)
            _compare(target, before, after, changes)
        return changes

    def _look(self, target: Target) -> dict[str, Known]:
        if target.pool is not None:
            return self._look_at_pool(target, target.pool)
        key = target.key
        service = self._reader.get(SERVICES, key.name, key.namespace)
        if service is None:
            self._ports.pop(key, None)
            return {}
        slices = self._reader.by_index(ENDPOINT_SLICES, SERVICE_OF_SLICE, str(key))
        self._ports[key] = tuple(ports(service))
        return {service_cluster(key, port.number): self._service_port(key, port, slices) for port in self._ports[key]}

    def _look_at_pool(self, target: Target, resource: Resource) -> dict[str, Known]:
        pool = self._reader.get(resource, target.key.name, target.key.namespace)
        if pool is None:
            return {}
        name = pool_cluster(target)
        ready = pools.members(self._reader.list(PODS, target.key.namespace), pool)
        endpoints = tuple(dict.fromkeys(member.endpoint for member in ready))
        members = Members(endpoints, come_back=self.comes_back(target))
        known = {name: Known(cluster(name, str(target.key), http2=False, picked=True), members)}
        picker = pools.picker_of(pool, self._reader)
        return known if picker is None else {**known, **self._look_at_picker(name, picker, target.key.namespace)}

    def _look_at_picker(self, pool: str, picker: pools.PickerRef, namespace: str) -> dict[str, Known]:
        """Returns the cluster of an endpoint picker. Its connections have TLS, unless the Service's port says h2c."""
        key = Key(namespace, picker.service)
        service = self._reader.get(SERVICES, key.name, key.namespace) or {}
        found = next((port for port in ports(service) if port.number == picker.port), None)
        slices = self._reader.by_index(ENDPOINT_SLICES, SERVICE_OF_SLICE, str(key))
        name = f"{pool} {_FAILS_OPEN if picker.fails_open else _FAILS_CLOSED}"
        definition = cluster(name, str(key), http2=True, tls=found is None or not found.is_h2c)
        return {name: Known(definition, _members(slices, found.name) if found is not None else Members())}

    def _service_port(self, key: Key, port: Port, slices: Iterable[Object]) -> Known:
        name = service_cluster(key, port.number)
        definition = cluster(name, str(key), http2=port.http2, picked=self.is_limited(key))
        return Known(definition, _members(slices, port.name, come_back=self.comes_back(Target(key))))


def service_cluster(key: Key, port: int | str) -> str:
    return f"{key}:{port}"


def pool_cluster(target: Target) -> str:
    assert target.pool is not None
    return f"{target.pool.kind}.{target.pool.group} {target.key}"


def cluster_target(name: str) -> tuple[Target, int | str]:
    """Returns what a cluster is of, and of a Service its port."""
    if " " in name:
        kind, key, *_ = name.split(" ")
        return Target(Key(*key.split("/")), pools.POOLS_BY_GROUP[kind.partition(".")[2]]), ""
    key, _, port = name.rpartition(":")
    return Target(Key(*key.split("/"))), int(port) if port.isdigit() else port


def _members(slices: Iterable[Object], port: str, *, come_back: bool = False) -> Members:
    endpoints = dict(slice_endpoints(slices, port))
    ready = tuple(sorted(endpoint for endpoint, is_ready in endpoints.items() if is_ready))
    others = tuple(sorted(endpoint for endpoint, is_ready in endpoints.items() if not is_ready))
    return Members(ready, others, come_back)


def _compare(target: Target, before: Mapping[str, Known], after: Mapping[str, Known], changes: Changes) -> None:
    nothing = Known({}, Members())
    for name, now in after.items():
        was = before.get(name, nothing)
        if now.definition != was.definition:
            changes.clusters[name] = now.definition
            changes.targets.add(target)
        if now.members != was.members or name not in before:
            has_emptied = was.members.ready and not now.members.ready
            (changes.emptied if has_emptied else changes.members)[name] = now.members
        if (bool(now.members.ready), now.members.come_back) != (bool(was.members.ready), was.members.come_back):
            changes.targets.add(target)
    changes.gone |= before.keys() - after.keys()
    if before.keys() != after.keys():
        changes.targets.add(target)

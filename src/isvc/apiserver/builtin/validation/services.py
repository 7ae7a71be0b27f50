"""Validates Services, Endpoints, EndpointSlices, Ingresses and NetworkPolicies."""

from __future__ import annotations

from collections.abc import Iterable

from isvc.apiserver.builtin.validation.checks import (
    Errors,
    address,
    check_name,
    check_unchanged,
    labels,
    one_of,
    port,
    required_name,
)
from isvc.apiserver.builtin.validation.containers import PROTOCOLS
from isvc.apiserver.field_errors import Struct, duplicate, forbidden, invalid, not_supported, required
from isvc.apiserver.objects import names
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.gourl import parse_address
from isvc.kube.objects import Object

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def service(obj: Object) -> Errors:
    spec = obj["spec"]
    kind, headless = spec["type"], spec.get("clusterIP") == "None"
    ports = spec.get("ports") or []
    if not ports and not headless and kind != "ExternalName":
        yield required("spec.ports")
    yield from one_of("spec.type", kind, _TYPES)
    yield from _ports(ports, kind)
    yield from labels("spec.selector", spec.get("selector"))
    yield from one_of("spec.sessionAffinity", spec["sessionAffinity"], ("ClientIP", "None"))
    if kind == "ExternalName":
        for field in ("ipFamilies", "ipFamilyPolicy"):
            if spec.get(field):
                yield forbidden(f"spec.{field}", "may not be set for ExternalName services")
        name = spec.get("externalName") or ""
        if not name:
            yield required("spec.externalName")
        else:
            yield from check_name("spec.externalName", name.removesuffix("."), names.subdomain)
    elif headless and kind in ("NodePort", "LoadBalancer"):
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    elif spec.get("clusterIP") and not headless:
        yield from address("spec.clusterIPs[0]", spec["clusterIP"])
    if spec.get("externalTrafficPolicy") and kind == "ClusterIP" and not spec.get("externalIPs"):
        words = "may only be set for externally-accessible services"
        yield invalid("spec.externalTrafficPolicy", spec["externalTrafficPolicy"], words)


def _ports(ports: list[Object], kind: str) -> Errors:
    seen_names: set[str] = set()
    seen: set[tuple[object, object]] = set()
    duplicates: list[FieldError] = []
    for index, each in enumerate(ports):
        path, name = f"spec.ports[{index}]", each.get("name") or ""
        if len(ports) > 1 and not name:
            yield required(f"{path}.name")
        elif name:
            yield from check_name(f"{path}.name", name, names.dns_label)
            if name in seen_names:
                yield duplicate(f"{path}.name", name)
            seen_names.add(name)
        yield from port(f"{path}.port", each.get("port"))
        yield from one_of(f"{path}.protocol", each.get("protocol"), PROTOCOLS)
        target = each.get("targetPort")
        if isinstance(target, str):
            problems = names.port_name(target)
            if problems:
                yield invalid(f"{path}.targetPort", target, problems[0])
        else:
            yield from port(f"{path}.targetPort", target)
        if each.get("nodePort") and kind == "ClusterIP":
            yield forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'")
        key = (each.get("protocol"), each.get("port"))
        if key in seen:
            duplicates.append(duplicate(path, _internal(each)))
        seen.add(key)
    yield from duplicates


def _internal(each: Object) -> Object:
    """Returns a repeated port as Kubernetes keeps it: only what makes it a repetition is filled in."""
    shown = {"Name": "", "Protocol": each.get("protocol"), "AppProtocol": None, "Port": each.get("port")}
    return Struct({**shown, "TargetPort": 0, "NodePort": 0})


def service_update(new: Object, old: Object) -> Errors:
    before, after = old["spec"], new["spec"]
    if "ExternalName" in (before.get("type"), after.get("type")):
        return
    was, now = before.get("clusterIPs") or [], after.get("clusterIPs") or []
    if was and now and was[0] != now[0]:
        yield invalid("spec.clusterIPs[0]", now, "may not change once set")


def ingress(obj: Object) -> Errors:
    spec = obj["spec"]
    if not spec.get("defaultBackend") and not spec.get("rules"):
        yield invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    if "defaultBackend" in spec:
        yield from _backend("spec.defaultBackend", spec["defaultBackend"])
    for index, rule in enumerate(spec.get("rules") or ()):
        yield from _host(f"spec.rules[{index}].host", rule.get("host") or "")
        if "http" in rule:
            yield from _paths(f"spec.rules[{index}].http.paths", rule["http"].get("paths") or ())
    if spec.get("ingressClassName") is not None:
        yield from check_name("spec.ingressClassName", spec["ingressClassName"], names.subdomain)


def _host(path: str, host: str) -> Errors:
    if parse_address(host) is not None:
        yield invalid(path, host, "must be a DNS name, not an IP address")
    elif host:
        yield from check_name(path, host, names.wildcard_subdomain if "*" in host else names.subdomain)


def _paths(path: str, found: Iterable[Object]) -> Errors:
    found = list(found)
    if not found:
        yield required(path)
    for index, each in enumerate(found):
        inner, kind, where = f"{path}[{index}]", each.get("pathType"), each.get("path") or ""
        if kind is None:
            yield required(f"{inner}.pathType", "pathType must be specified")
        elif kind in ("Exact", "Prefix"):
            yield from _absolute(f"{inner}.path", where)
        elif kind != "ImplementationSpecific":
            yield not_supported(f"{inner}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix"))
        elif where and not where.startswith("/"):
            yield invalid(f"{inner}.path", where, "must be an absolute path")
        if kind is not None:
            yield from _backend(f"{inner}.backend", each.get("backend") or {})


def _absolute(path: str, where: str) -> Errors:
    if not where.startswith("/"):
        yield invalid(path, where, "must be an absolute path")
    for part in ("//", "/./", "/../", "%2f", "%2F"):
        if part in where:
            yield invalid(path, where, f"must not contain '{part}'")
    for end in ("/..", "/."):
        if where.endswith(end):
            yield invalid(path, where, f"cannot end with '{end}'")


def _backend(path: str, backend: Object) -> Errors:
    wanted = backend.get("service")
    if wanted is None:
        if "resource" not in backend:
            yield invalid(path, "", "resource or service backend is required")
        return
    if "resource" in backend:
        yield invalid(path, "", "cannot set both resource and service backends")
    name, where = wanted.get("name") or "", wanted.get("port") or {}
    yield from required_name(f"{path}.service.name", name, names.dns_1035)
    if where.get("name") and where.get("number"):
        yield invalid(f"{path}", "", "cannot set both port name & port number")
    elif where.get("name"):
        yield from check_name(f"{path}.service.port.name", where["name"], names.port_name)
    elif not where.get("number"):
        yield required(f"{path}.service.port", "port name or number is required")
    else:
        yield from port(f"{path}.service.port.number", where["number"])


def endpoints(obj: Object) -> Errors:
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for kind in ("addresses", "notReadyAddresses"):
            for at, each in enumerate(subset.get(kind) or ()):
                yield from address(f"{path}.{kind}[{at}].ip", each.get("ip") or "")
        for at, each in enumerate(subset.get("ports") or ()):
            yield from port(f"{path}.ports[{at}].port", each.get("port"))


def endpoint_slice(obj: Object) -> Errors:
    kind = obj.get("addressType") or ""
    yield from one_of("addressType", kind, ("FQDN", "IPv4", "IPv6"))
    for index, each in enumerate(obj.get("endpoints") or ()):
        path = f"endpoints[{index}].addresses"
        if not each.get("addresses"):
            yield required(path, "must contain at least 1 address")
        for at, value in enumerate(each.get("addresses") or ()):
            if kind in ("IPv4", "IPv6"):
                yield from address(f"{path}[{at}]", value)
                yield from _family(path, value, kind)
    seen: set[str] = set()
    for index, each in enumerate(obj.get("ports") or ()):
        if each["name"] in seen:
            yield duplicate(f"ports[{index}].name", each["name"])
        seen.add(each["name"])
        yield from one_of(f"ports[{index}].protocol", each["protocol"], PROTOCOLS)


def _family(path: str, value: str, kind: str) -> Errors:
    found = parse_address(value)
    if found is not None and f"IPv{found.version}" != kind:
        yield invalid(path, value, f"must be an {kind} address")


def endpoint_slice_update(new: Object, old: Object) -> Errors:
    yield from check_unchanged("addressType", new.get("addressType"), old.get("addressType"))


def network_policy(obj: Object) -> Errors:
    spec = obj["spec"]
    for kind, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(kind) or ()):
            for at, each in enumerate(rule.get("ports") or ()):
                if each.get("port") is not None:
                    yield from port(f"spec.{kind}[{index}].ports[{at}].port", each["port"])
            for at, each in enumerate(rule.get(peers) or ()):
                if not each:
                    yield required(f"spec.{kind}[{index}].{peers}[{at}]", "must specify a peer")
    for index, each in enumerate(spec.get("policyTypes") or ()):
        yield from one_of(f"spec.policyTypes[{index}]", each, ("Ingress", "Egress"))

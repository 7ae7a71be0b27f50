"""What an object uses of a ResourceQuota, and which quotas it falls under."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from isvc.apiserver.admission.plugins.amounts import Amounts, amounts, pod_amounts
from isvc.kube.objects import Object, annotations_of, containers_of, dig
from isvc.kube.pods import is_terminal
from isvc.kube.quantity import Quantity

UNCOUNTED = ("events", "events.events.k8s.io")
_ALSO_BY_NAME = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_NAMES = {"pods", "count/pods", *_COMPUTE} | {
    f"{kind}.{name}" for kind in ("requests", "limits") for name in _COMPUTE
}
_MUST_BE_STATED = {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
_BY_CLASS = ".storageclass.storage.k8s.io/"
_ONE = Quantity.parse("1")
_NONE = Quantity.parse("0")


def usage(collection: str, obj: Object) -> Amounts:
    """Returns what the object uses, by the names that quotas have for it."""
    used: Amounts = {f"count/{collection}": _ONE}
    match collection:
        case "pods":
            if not is_terminal(obj):
                requests, limits = pod_amounts(obj["spec"], "requests"), pod_amounts(obj["spec"], "limits")
                used |= _container_usage(requests, limits)
        case "services":
            used |= {"services": _ONE, **_service_usage(obj["spec"])}
        case "persistentvolumeclaims":
            used |= _claim_usage(obj)
        case _ if collection in _ALSO_BY_NAME:
            used[collection] = _ONE
    return used


def counted_names(collection: str, names: Iterable[str]) -> list[str]:
    """Returns those of a quota's names that say something about objects of this collection."""
    match collection:
        case "pods":
            return [name for name in names if name in _POD_NAMES or _is_extended(name)]
        case "services":
            known = {"services", "services.nodeports", "services.loadbalancers", "count/services"}
            return [name for name in names if name in known]
        case "persistentvolumeclaims":
            plain = {"persistentvolumeclaims", "requests.storage", "count/persistentvolumeclaims"}
            return [name for name in names if name in plain or _BY_CLASS in name]
    own = {f"count/{collection}", *((collection,) if collection in _ALSO_BY_NAME else ())}
    return [name for name in names if name in own]


def in_scope(quota: Object, collection: str, obj: Object) -> bool:
    spec = quota.get("spec") or {}
    selectors = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or ()]
    selectors += dig(spec, "scopeSelector", "matchExpressions") or ()
    return all(collection == "pods" and _in_scope(each, obj) for each in selectors)


def missing_amounts(names: Iterable[str], pod: Object) -> str:
    """Returns a complaint about containers that say nothing of what a quota limits; empty if all do."""
    if dig(pod, "spec", "resources"):
        return ""
    missing: dict[str, set[str]] = {}
    for container in containers_of(pod["spec"]):
        resources = container.get("resources") or {}
        stated = _container_usage(amounts(resources.get("requests")), amounts(resources.get("limits")))
        for name in _MUST_BE_STATED.intersection(names) - stated.keys():
            missing.setdefault(name, set()).add(container["name"])
    listed = "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
    return f"must specify {listed}" if listed else ""


def _container_usage(requests: Amounts, limits: Amounts) -> Amounts:
    used: Amounts = {"pods": _ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            used[name] = amount
        if name in _COMPUTE or name.startswith("hugepages-") or "/" in name:
            used[f"requests.{name}"] = amount
    return used | {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}


def _service_usage(spec: Object) -> Amounts:
    ports, kind = spec.get("ports") or (), spec.get("type")
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    on_nodes = Quantity.parse(len(ports)) if kind in ("NodePort", "LoadBalancer") else _NONE
    return {"services.nodeports": on_nodes, "services.loadbalancers": _ONE if kind == "LoadBalancer" else _NONE}


def _claim_usage(claim: Object) -> Amounts:
    used: Amounts = {"persistentvolumeclaims": _ONE}
    if storage := dig(claim, "spec", "resources", "requests", "storage"):
        used["requests.storage"] = Quantity.parse(storage)
    older = annotations_of(claim).get("volume.beta.kubernetes.io/storage-class")
    name = older or dig(claim, "spec", "storageClassName")
    return used | ({f"{name}{_BY_CLASS}{each}": amount for each, amount in used.items()} if name else {})


def _is_extended(name: str) -> bool:
    if name.startswith(("hugepages-", "requests.hugepages-")):
        return True
    return name.startswith("requests.") and "/" in name and "kubernetes.io/" not in name


def _in_scope(selector: Object, pod: Object) -> bool:
    spec, priority = pod["spec"], pod["spec"].get("priorityClassName") or ""
    terminating = spec.get("activeDeadlineSeconds") is not None
    best_effort = not any(set(pod_amounts(spec, kind)) & {"cpu", "memory"} for kind in ("requests", "limits"))
    match selector["scopeName"]:
        case "Terminating":
            return terminating
        case "NotTerminating":
            return not terminating
        case "BestEffort":
            return best_effort
        case "NotBestEffort":
            return not best_effort
        case "PriorityClass":
            return _OPERATORS[selector["operator"]](priority, selector.get("values") or ())
        case "CrossNamespacePodAffinity":
            return _reaches_out(spec.get("affinity") or {})
    return False


_OPERATORS: dict[str, Callable[[str, Iterable[str]], bool]] = {
    "Exists": lambda value, _: bool(value),
    "DoesNotExist": lambda value, _: not value,
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
}


def _reaches_out(affinity: Object) -> bool:
    """Returns whether a pod wants to be near or far from pods of other namespaces."""
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = list(dig(affinity, kind, "requiredDuringSchedulingIgnoredDuringExecution") or ())
        preferred = dig(affinity, kind, "preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [each.get("podAffinityTerm") or {} for each in preferred]
        if any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms):
            return True
    return False

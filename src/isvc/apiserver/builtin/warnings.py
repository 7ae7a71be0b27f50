"""Warnings about what is accepted and most likely a mistake: duplicate ports and variables, deprecated fields.

Pods are looked at when they are created, workloads also when they change. Not warned of: paths that overlap in
projected volumes, and addresses that are written in an unusual way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from isvc.apiserver.field_errors import quote
from isvc.apiserver.objects.names import dns_label
from isvc.kube.objects import Object, annotations_of, dig
from isvc.kube.quantity import Quantity

Warn = Callable[[Object, Object | None], Iterable[str]]

_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_IN_NAMES = (
    "this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended"
)


def pod(obj: Object, old: Object | None) -> Iterator[str]:
    if old is None:
        yield from _pod("", obj)


def workload(*path: str, named: bool = False) -> Warn:
    """Warns about the pods that a workload would make; `named` where they bear its name."""

    def warnings(obj: Object, old: Object | None) -> Iterator[str]:
        if old is None and named and (problems := dns_label(obj["metadata"].get("name", ""))):
            yield f"metadata.name: {_IN_NAMES}: [{' '.join(problems)}]"
        if old is None or obj["metadata"].get("generation") != old["metadata"].get("generation"):
            template = dig(obj, *path)
            if template:
                yield from _pod(".".join(path) + ".", template)

    return warnings


def service(obj: Object, old: Object | None) -> Iterator[str]:
    spec, hints = obj["spec"], "service.kubernetes.io/topology-aware-hints"
    if hints in annotations_of(obj):
        yield f"annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"
    external = spec.get("type") == "ExternalName"
    if spec.get("clusterIP") == "None" and spec.get("type") == "ClusterIP":
        if spec.get("loadBalancerIP"):
            yield "spec.loadBalancerIP is ignored for headless services"
        if spec.get("externalIPs"):
            yield "spec.externalIPs is ignored for headless services"
        if spec.get("sessionAffinity", "None") != "None":
            yield "spec.SessionAffinity is ignored for headless services"
    if external and spec.get("externalIPs"):
        yield 'spec.externalIPs is ignored when spec.type is "ExternalName"'
    if not external and spec.get("externalName"):
        yield 'spec.externalName is ignored when spec.type is not "ExternalName"'
    if spec.get("trafficDistribution") == "PreferClose":
        yield 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'


def ingress(obj: Object, old: Object | None) -> Iterator[str]:
    mark = "kubernetes.io/ingress.class"
    if old is None and mark in annotations_of(obj):
        yield f"annotation {quote(mark)} is deprecated, please use 'spec.ingressClassName' instead"


def _pod(path: str, template: Object) -> Iterator[str]:
    spec, where = template.get("spec") or {}, f"{path}spec"
    yield from _labels(where, spec)
    annotations = annotations_of({"metadata": template.get("metadata") or {}})
    for key, why in _ANNOTATIONS.items():
        if key in annotations:
            yield f"{path}metadata.annotations[{key}]: {why}"
    for index, volume in enumerate(spec.get("volumes") or ()):
        for kind, why in _VOLUMES.items():
            if kind in volume:
                yield f"{where}.volumes[{index}].{'storageOS' if kind == 'storageos' else kind}: {why}"
    yield from _twice(f"{where}.hostAliases", "ip", spec.get("hostAliases"))
    yield from _twice(f"{where}.imagePullSecrets", "name", spec.get("imagePullSecrets"))
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            yield f'{where}.imagePullSecrets[{index}].name: invalid empty name ""'
    yield from _fractions(f"{where}.overhead", spec.get("overhead"))
    containers = list(_containers(where, spec))
    for at, container in containers:
        yield from _fractions(f"{at}.resources.limits", dig(container, "resources", "limits"))
        yield from _fractions(f"{at}.resources.requests", dig(container, "resources", "requests"))
        yield from _hidden_variables(f"{at}.env", container.get("env") or ())
    yield from _ports(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        why = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{where}.terminationGracePeriodSeconds: {why}"
    yield from _affinity(f"{where}.affinity", spec.get("affinity") or {})


def _containers(where: str, spec: Object) -> Iterator[tuple[str, Object]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield f"{where}.{field}[{index}]", container


def _labels(where: str, spec: Object) -> Iterator[str]:
    for key in spec.get("nodeSelector") or ():
        if key in _LABELS:
            yield f"{where}.nodeSelector[{key}]: {_LABELS[key]}"
    for index, each in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = f"{where}.topologySpreadConstraints[{index}]", each.get("topologyKey")
        if key in _LABELS:
            yield f"{at}.topologyKey: {key} is {_LABELS[key]}"
        if each.get("labelSelector") is None:
            yield f"{at}.labelSelector: a null labelSelector results in matching no pod"


def _twice(path: str, field: str, items: list[Object] | None) -> Iterator[str]:
    seen: set[Any] = set()
    for index, item in enumerate(items or ()):
        value = item.get(field, "")
        if value in seen:
            yield f"{path}[{index}].{field}: duplicate {field} {quote(value)}"
        seen.add(value)


def _fractions(path: str, listed: Object | None) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        if listed and name in listed and Quantity.parse(listed[name]).milli() % 1000:
            yield f"{path}[{name}]: fractional byte value {quote(str(listed[name]))} is invalid, must be an integer"


def _hidden_variables(path: str, variables: Iterable[Object]) -> Iterator[str]:
    """Warns of variables that are defined again, other than by extending what they were."""
    seen = set()
    for index, each in enumerate(variables):
        name, value = each.get("name", ""), each.get("value") or ""
        own = f"$({name})"
        if name in seen and (each.get("valueFrom") or value == own or own not in value):
            yield f"{path}[{index}]: hides previous definition of {quote(name)}, which may be dropped when using apply"
        seen.add(name)


def _ports(containers: list[tuple[str, Object]]) -> Iterator[str]:
    ports = [(f"{at}.ports[{i}]", port) for at, each in containers for i, port in enumerate(each.get("ports") or ())]
    earlier: dict[Any, list[tuple[str, Object]]] = {}
    for at, port in ports:
        others = earlier.setdefault((port.get("containerPort"), port.get("protocol", "TCP")), [])
        for other_at, other in others:
            mine, theirs = _on_host(port), _on_host(other)
            if mine == theirs:
                yield f"{at}: duplicate port definition with {other_at}"
            elif not mine[1] or not theirs[1]:
                yield f"{at}: overlapping port definition with {other_at}"
            elif mine[1] == theirs[1] and bool(mine[0]) != bool(theirs[0]):
                yield f"{at}: dangerously ambiguous port definition with {other_at}"
        others.append((at, port))
    named: dict[str, str] = {}
    for at, port in ports:
        name = port.get("name")
        if name and name in named:
            first = named[name]
            why = f"services and probes that select ports by name will use {first}"
            yield f"{at}: duplicate port name {quote(name)} with {first}, {why}"
        elif name:
            named[name] = at


def _on_host(port: Object) -> tuple[str, int]:
    return port.get("hostIP") or "", port.get("hostPort") or 0


def _affinity(path: str, affinity: Object) -> Iterator[str]:
    why = "a null labelSelector results in matching no pod"
    for kind in ("podAffinity", "podAntiAffinity"):
        for index, term in enumerate(dig(affinity, kind, _REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{path}.{kind}.{_REQUIRED}[{index}].labelSelector: {why}"
        for index, term in enumerate(dig(affinity, kind, _PREFERRED) or ()):
            if dig(term, "podAffinityTerm", "labelSelector") is None:
                yield f"{path}.{kind}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {why}"


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

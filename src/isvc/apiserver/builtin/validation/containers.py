"""Validates containers: names, images, ports, variables, probes, resources and mounts."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from isvc.apiserver.builtin.validation.checks import Errors, check_name, not_negative, one_of, port, required_name
from isvc.apiserver.field_errors import duplicate, forbidden, invalid, not_found, not_supported, required
from isvc.apiserver.objects import names
from isvc.kube.objects import Object
from isvc.kube.quantity import Quantity

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS = frozenset({
    "metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations", "spec.nodeName",
    "spec.serviceAccountName", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
})  # fmt: skip
_RESOURCE_FIELDS = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})


def containers(path: str, found: Iterable[Object], volumes: Collection[str], taken: set[str], *, init: bool) -> Errors:
    for index, each in enumerate(found):
        inner = f"{path}[{index}]"
        name = each.get("name") or ""
        yield from required_name(f"{inner}.name", name, names.dns_label)
        if name and name in taken:
            yield duplicate(f"{inner}.name", name)
        taken.add(name)
        yield from container(inner, each, volumes)
        if init and each.get("restartPolicy") != "Always":
            for kind in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if kind in each:
                    words = "may not be set for init containers without restartPolicy=Always"
                    yield forbidden(f"{inner}.{kind}", words)


def container(path: str, spec: Object, volumes: Collection[str]) -> Errors:
    image = spec.get("image") or ""
    if not image:
        yield required(f"{path}.image")
    elif image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    policies = ("File", "FallbackToLogsOnError")
    yield from one_of(f"{path}.terminationMessagePolicy", spec.get("terminationMessagePolicy"), policies)
    yield from _ports(f"{path}.ports", spec.get("ports") or ())
    yield from _variables(f"{path}.env", spec.get("env") or ())
    yield from _variable_sources(f"{path}.envFrom", spec.get("envFrom") or ())
    yield from _mounts(f"{path}.volumeMounts", spec.get("volumeMounts") or (), volumes)
    yield from one_of(f"{path}.imagePullPolicy", spec.get("imagePullPolicy"), _PULL_POLICIES)
    yield from resources(f"{path}.resources", spec.get("resources") or {})
    yield from _security(f"{path}.securityContext", spec.get("securityContext") or {})
    for action in ("postStart", "preStop"):
        handler = (spec.get("lifecycle") or {}).get(action)
        if handler is not None:
            yield from _handler(f"{path}.lifecycle.{action}", handler)
    for kind in ("livenessProbe", "readinessProbe", "startupProbe"):
        if kind in spec:
            yield from probe(f"{path}.{kind}", spec[kind], only_one=kind != "readinessProbe")


def _ports(path: str, found: Iterable[Object]) -> Errors:
    seen: set[str] = set()
    for index, each in enumerate(found):
        inner, name = f"{path}[{index}]", each.get("name")
        if name:
            problems = names.port_name(name)
            if problems:
                yield invalid(f"{inner}.name", name, problems[0])
            elif name in seen:
                yield duplicate(f"{inner}.name", name)
            seen.add(name)
        if not each.get("containerPort"):
            yield required(f"{inner}.containerPort")
        else:
            yield from port(f"{inner}.containerPort", each["containerPort"])
        if each.get("hostPort"):
            yield from port(f"{inner}.hostPort", each["hostPort"])
        yield from one_of(f"{inner}.protocol", each.get("protocol"), PROTOCOLS)


def _variables(path: str, found: Iterable[Object]) -> Errors:
    for index, each in enumerate(found):
        inner, name = f"{path}[{index}]", each.get("name") or ""
        if not name:
            yield required(f"{inner}.name")
        elif names.environment_name(name):
            words = "a valid environment variable name must consist only of printable ASCII characters other than '='"
            yield invalid(f"{inner}.name", name, words)
        if "valueFrom" in each:
            yield from _value_from(f"{inner}.valueFrom", each["valueFrom"], bool(each.get("value")))


def _value_from(path: str, source: Object, has_value: bool) -> Errors:
    given = [each for each in _SOURCES if each in source]
    if not given:
        words = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield invalid(path, "", words)
    elif has_value:
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
    if "fieldRef" in source:
        field = source["fieldRef"].get("fieldPath") or ""
        if not field:
            yield required(f"{path}.fieldRef.fieldPath")
        elif field not in _FIELDS and not field.startswith(("metadata.labels['", "metadata.annotations['")):
            words = f"error converting fieldPath: field label not supported: {field}"
            yield invalid(f"{path}.fieldRef.fieldPath", field, words)
    if "resourceFieldRef" in source:
        resource = source["resourceFieldRef"].get("resource") or ""
        if not resource:
            yield required(f"{path}.resourceFieldRef.resource")
        elif resource not in _RESOURCE_FIELDS and "hugepages-" not in resource:
            yield not_supported(f"{path}.resourceFieldRef.resource", resource, _RESOURCE_FIELDS)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if kind in source:
            yield from check_name(f"{path}.{kind}.name", source[kind].get("name") or "", names.subdomain)
            key = source[kind].get("key") or ""
            yield from required_name(f"{path}.{kind}.key", key, names.config_key)


def _variable_sources(path: str, found: Iterable[Object]) -> Errors:
    for index, each in enumerate(found):
        given = [kind for kind in ("configMapRef", "secretRef") if kind in each]
        if not given:
            yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
        for kind in given:
            name = each[kind].get("name") or ""
            yield from required_name(f"{path}[{index}].{kind}.name", name, names.subdomain)


def _mounts(path: str, found: Iterable[Object], volumes: Collection[str]) -> Errors:
    seen: set[str] = set()
    for index, each in enumerate(found):
        inner, name, where = f"{path}[{index}]", each.get("name") or "", each.get("mountPath") or ""
        if not name:
            yield required(f"{inner}.name")
        if name not in volumes:
            yield not_found(f"{inner}.name", name)
        if not where:
            yield required(f"{inner}.mountPath")
        elif where in seen:
            yield invalid(f"{inner}.mountPath", where, "must be unique")
        seen.add(where)
        if ".." in (each.get("subPath") or "").split("/"):
            yield invalid(f"{inner}.subPath", each["subPath"], "must not contain '..'")


def probe(path: str, spec: Object, *, only_one: bool) -> Errors:
    yield from _handler(path, spec)
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
        yield from not_negative(f"{path}.{key}", spec.get(key))
    if only_one and spec.get("successThreshold", 1) != 1:
        yield invalid(f"{path}.successThreshold", spec["successThreshold"], "must be 1")


def _handler(path: str, spec: Object) -> Errors:
    given = [each for each in _HANDLERS if each in spec]
    if not given and "sleep" not in spec:
        yield required(path, "must specify a handler type")
    for extra in given[1:]:
        yield forbidden(f"{path}.{extra}", "may not specify more than 1 handler type")
    for kind in given[:1]:
        if kind == "exec" and not spec["exec"].get("command"):
            yield required(f"{path}.exec.command")
        if kind != "exec":
            yield from port(f"{path}.{kind}.port", spec[kind].get("port"))
        if kind == "httpGet":
            yield from one_of(f"{path}.httpGet.scheme", spec[kind].get("scheme", "HTTP"), ("HTTP", "HTTPS"))


def resources(path: str, spec: Object) -> Errors:
    limits, requests = spec.get("limits") or {}, spec.get("requests") or {}
    for kind, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            inner = f"{path}.{kind}[{name}]"
            if "/" not in name and name not in _STANDARD and not name.startswith("hugepages-"):
                yield invalid(inner, name, "must be a standard resource type or fully qualified")
                yield invalid(inner, name, "must be a standard resource for containers")
            if Quantity.parse(amount).nanos < 0:
                yield invalid(inner, amount, "must be greater than or equal to 0")
            if kind == "requests":
                yield from _within_limit(path, name, amount, limits)


def _within_limit(path: str, name: str, amount: str, limits: Object) -> Errors:
    limit = limits.get(name)
    if limit is not None and Quantity.parse(amount) > Quantity.parse(limit):
        if "/" in name:
            words = f"must be equal to {name} limit of {limit}"
        else:
            words = f"must be less than or equal to {name} limit of {limit}"
        yield invalid(f"{path}.requests", amount, words)
    elif limit is not None and "/" in name and Quantity.parse(amount) != Quantity.parse(limit):
        yield invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")
    elif limit is None and "/" in name:
        yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")


def _security(path: str, spec: Object) -> Errors:
    for key in ("runAsUser", "runAsGroup"):
        if spec.get(key) is not None and not 0 <= spec[key] < 2**31:
            yield invalid(f"{path}.{key}", spec[key], "must be between 0 and 2147483647, inclusive")
    if spec.get("privileged") and spec.get("allowPrivilegeEscalation") is False:
        yield invalid(path, spec, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")

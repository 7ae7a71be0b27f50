"""Validates pods and pod templates, and what an update of a pod may still change."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from isvc.apiserver.builtin.prepare import quality_of_service
from isvc.apiserver.builtin.validation.checks import Errors, check_name, labels, one_of, required_name
from isvc.apiserver.builtin.validation.containers import containers
from isvc.apiserver.field_errors import duplicate, forbidden, invalid, not_found, not_supported, required
from isvc.apiserver.objects import names
from isvc.kube.objects import Object, dig

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_EPHEMERAL_FIELDS = (
    *("name", "image", "imagePullPolicy", "command", "args", "workingDir", "env", "envFrom", "volumeMounts"),
    *("volumeDevices", "securityContext", "stdin", "stdinOnce", "tty"),
    *("terminationMessagePath", "terminationMessagePolicy"),
)
_UPDATE_WORDS = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod(obj: Object) -> Errors:
    yield from pod_spec("spec", obj["spec"])


def template(path: str, spec: Object) -> Errors:
    yield from labels(f"{path}.metadata.labels", spec["metadata"].get("labels"))
    yield from pod_spec(f"{path}.spec", spec["spec"])


def pod_spec(path: str, spec: Object) -> Errors:
    faults = list(_volumes(f"{path}.volumes", spec.get("volumes") or ()))
    yield from faults
    faulty = {fault.field.removeprefix(f"{path}.volumes[").partition("]")[0] for fault in faults}
    known = {each.get("name") for index, each in enumerate(spec.get("volumes") or ()) if str(index) not in faulty}
    taken: set[str] = set()
    if not spec.get("containers"):
        yield required(f"{path}.containers")
    yield from containers(f"{path}.containers", spec.get("containers") or (), known, taken, init=False)
    yield from containers(f"{path}.initContainers", spec.get("initContainers") or (), known, taken, init=True)
    yield from _ephemeral_containers(f"{path}.ephemeralContainers", spec, known, taken)
    yield from one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    yield from one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    yield from labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline < 2**31:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for key, rule in (
        ("serviceAccountName", names.subdomain),
        ("nodeName", names.subdomain),
        ("hostname", names.dns_label),
        ("subdomain", names.dns_label),
    ):
        if spec.get(key):
            yield from check_name(f"{path}.{key}", spec[key], rule)
    yield from _tolerations(f"{path}.tolerations", spec.get("tolerations") or ())
    yield from _spread(f"{path}.topologySpreadConstraints", spec.get("topologySpreadConstraints") or ())


def _volumes(path: str, found: Iterable[Object]) -> Errors:
    seen: set[str] = set()
    for index, each in enumerate(found):
        inner, name = f"{path}[{index}]", each.get("name") or ""
        kinds = [key for key in each if key != "name"]
        words = "may not specify more than 1 volume type"
        complaints = [forbidden(f"{inner}.{extra}", words) for extra in kinds[1:]]
        if not complaints and kinds:
            complaints += _source(f"{inner}.{kinds[0]}", kinds[0], each[kinds[0]])
        yield from required_name(f"{inner}.name", name, names.dns_label)
        if name in seen and not complaints:
            yield duplicate(f"{inner}.name", name)
        seen.add(name)
        yield from complaints


def _source(path: str, kind: str, source: Object) -> Errors:
    needed = {"secret": "secretName", "configMap": "name", "persistentVolumeClaim": "claimName", "csi": "driver"}
    if kind in needed and not source.get(needed[kind]):
        yield required(f"{path}.{needed[kind]}")
    if kind == "image" and not source.get("reference") and path.startswith("spec.volumes["):  # templates may lack it
        yield required(f"{path}.reference")
    if kind == "hostPath":
        where = source.get("path") or ""
        if not where:
            yield required(f"{path}.path")
        elif ".." in where.split("/"):
            yield invalid(f"{path}.path", where, "must not contain '..'")
    if kind == "nfs":
        for key in ("server", "path"):
            if not source.get(key):
                yield required(f"{path}.{key}")


def _tolerations(path: str, found: Iterable[Object]) -> Errors:
    for index, each in enumerate(found):
        inner, operator = f"{path}[{index}]", each.get("operator")
        if not each.get("key") and operator != "Exists":
            words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{inner}.operator", operator or "", words)
        if "tolerationSeconds" in each and each.get("effect") != "NoExecute":
            words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{inner}.effect", each.get("effect") or "", words)
        if operator == "Exists" and each.get("value"):
            yield invalid(f"{inner}.operator", each["value"], "value must be empty when `operator` is 'Exists'")
        elif operator not in (None, "", "Equal", "Exists"):
            yield not_supported(f"{inner}.operator", operator, ("Equal", "Exists"))
        if each.get("effect"):
            yield from one_of(f"{inner}.effect", each["effect"], _EFFECTS)


def _spread(path: str, found: Iterable[Object]) -> Errors:
    for index, each in enumerate(found):
        inner = f"{path}[{index}]"
        if each.get("maxSkew", 0) <= 0:
            yield invalid(f"{inner}.maxSkew", each.get("maxSkew", 0), "must be greater than zero")
        if not each.get("topologyKey"):
            yield required(f"{inner}.topologyKey", "can not be empty")
        choices = ("DoNotSchedule", "ScheduleAnyway")
        yield from one_of(f"{inner}.whenUnsatisfiable", each.get("whenUnsatisfiable"), choices)


def pod_update(new: Object, old: Object) -> Errors:
    after, before = new["spec"], old["spec"]
    for key in ("containers", "initContainers"):
        if len(after.get(key) or ()) != len(before.get(key) or ()):
            yield forbidden(f"spec.{key}", "pod updates may not add or remove containers")
            return
    was, now = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if was is not None and now is None:
        yield invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    elif was is not None and now > was:
        yield invalid("spec.activeDeadlineSeconds", now, "must be less than or equal to previous value")
        return
    kept = [each for each in before.get("tolerations") or () if each not in (after.get("tolerations") or ())]
    if _comparable(after) != _comparable(before) or kept:
        yield forbidden("spec", _UPDATE_WORDS)


def pod_resize(new: Object, old: Object) -> Errors:
    """Lets only cpu and memory of containers that run change, and the pod stay of its quality."""
    quality = quality_of_service(new["spec"])
    if quality != (dig(old, "status", "qosClass") or quality_of_service(old["spec"])):
        yield invalid("spec", quality, "Pod QOS Class may not change as a result of resizing")
    for index, (after, before) in enumerate(zip(new["spec"]["containers"], old["spec"]["containers"], strict=False)):
        for part in ("limits", "requests"):
            wanted, had = dig(after, "resources", part) or {}, dig(before, "resources", part) or {}
            path = f"spec.containers[{index}].resources.{part}"
            if had.keys() - wanted.keys():
                yield forbidden(path, f"resource {part} cannot be removed")
            if any(wanted.get(name) != had.get(name) for name in wanted if name not in ("cpu", "memory")):
                yield forbidden("spec", "only cpu and memory resources are mutable")
    pairs = zip(new["spec"].get("initContainers") or (), old["spec"].get("initContainers") or (), strict=False)
    for after, before in pairs:
        if before.get("restartPolicy") != "Always" and after != before:
            yield forbidden("spec", "resources for non-sidecar init containers are immutable")


def _ephemeral_containers(path: str, spec: Object, volumes: set[str], taken: set[str]) -> Errors:
    found = spec.get("ephemeralContainers") or ()
    targets = set(taken)
    plain = [{field: each[field] for field in each if field in _EPHEMERAL_FIELDS} for each in found]
    yield from containers(path, plain, volumes, taken, init=False)
    for index, each in enumerate(found):
        target = each.get("targetContainerName")
        if target and target not in targets:
            yield not_found(f"{path}[{index}].targetContainerName", target)
        for field in each:
            if each[field] and field not in (*_EPHEMERAL_FIELDS, "targetContainerName"):
                yield forbidden(f"{path}[{index}].{field}", "cannot be set for an Ephemeral Container")


def ephemeral_containers_update(new: Object, old: Object) -> Errors:
    """Lets containers for debugging be added, which stay as they are from then on."""
    after = {each.get("name"): each for each in new["spec"].get("ephemeralContainers") or ()}
    for before in old["spec"].get("ephemeralContainers") or ():
        path = "spec.ephemeralContainers"
        name = before.get("name")
        if name not in after:
            yield forbidden(path, f'existing ephemeral containers "{name}" may not be removed\n')
        elif after[name] != before:
            yield forbidden(path, f'existing ephemeral containers "{name}" may not be changed')


def _comparable(spec: Object) -> Object:
    """Returns the part of a spec that no update may change."""
    rest = {k: v for k, v in spec.items() if k not in ("activeDeadlineSeconds", "tolerations")}
    if rest.get("schedulingGates"):
        rest.pop("schedulingGates")
    for key in ("containers", "initContainers"):
        if rest.get(key):
            rest[key] = [{k: v for k, v in each.items() if k != "image"} for each in copy.copy(rest[key])]
    return rest

"""Validates ConfigMaps, Secrets, volumes and claims of them and of devices, ResourceQuotas, Leases and Events."""

from __future__ import annotations

import base64

import orjson

from isvc.apiserver.builtin.validation.checks import Errors, check_name, check_unchanged, not_negative, one_of
from isvc.apiserver.field_errors import forbidden, invalid, not_supported, required, too_long
from isvc.apiserver.objects import names
from isvc.kube.objects import Object, annotations_of, namespace_of
from isvc.kube.quantity import Quantity

_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_LARGEST = 1 << 20
_IMMUTABLE = "field is immutable when `immutable` is set"
_CLAIM_WORDS = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_ACCOUNT = "kubernetes.io/service-account.name"
_REQUIRED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}


def resource_quota(obj: Object) -> Errors:
    for name, amount in sorted(((obj.get("spec") or {}).get("hard") or {}).items()):
        if Quantity.parse(amount).nanos < 0:
            yield invalid(f"spec.hard[{name}]", amount, "must be greater than or equal to 0")


def config_map(obj: Object) -> Errors:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for field, values in (("data", data), ("binaryData", binary)):
        for key in values:
            problems = names.config_key(key)
            if problems:
                yield invalid(f"{field}[{key}]", key, problems[0])
            if field == "data" and key in binary:
                yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    size = sum(len(each.encode()) for each in data.values()) + sum(len(each) * 3 // 4 for each in binary.values())
    if size > _LARGEST:
        yield too_long("", _LARGEST)


def secret(obj: Object) -> Errors:
    data, kind = obj.get("data") or {}, obj["type"]
    for key in data:
        yield from check_name(f"data[{key}]", key, names.config_key)
    if sum(len(each) * 3 // 4 for each in data.values()) > _LARGEST:
        yield too_long("data", _LARGEST)
    if kind == "kubernetes.io/service-account-token" and not annotations_of(obj).get(_ACCOUNT):
        yield required(f"metadata.annotations[{_ACCOUNT}]")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    for key in _REQUIRED_KEYS.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif key.startswith(".docker"):
            try:
                orjson.loads(base64.b64decode(data[key]))
            except ValueError:
                words = "invalid character looking for beginning of value"
                yield invalid(f"data[{key}]", "<secret contents redacted>", words)


def immutable(new: Object, old: Object) -> Errors:
    """Checks that a config map or a secret that says it never changes does not."""
    if new["kind"] == "Secret" and new["type"] != old["type"]:
        yield invalid("type", new["type"], "field is immutable")
    if old.get("immutable"):
        for key in ("immutable", "data", "binaryData"):
            if new.get(key) != old.get(key):
                yield forbidden(key, _IMMUTABLE)


def claim(obj: Object) -> Errors:
    spec = obj["spec"]
    if not spec.get("accessModes"):
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in spec.get("accessModes") or ():
        yield from one_of("spec.accessModes", mode, _MODES)
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        yield required("spec.resources[storage]")
    elif Quantity.parse(size).nanos <= 0:
        yield invalid("spec.resources[storage]", size, "must be greater than zero")
    if spec.get("storageClassName"):
        yield from check_name("spec.storageClassName", spec["storageClassName"], names.subdomain)


def claim_update(new: Object, old: Object) -> Errors:
    before, after = dict(old["spec"]), dict(new["spec"])
    if before.get("storageClassName") is None:
        after.pop("storageClassName", None)
    if not before.get("volumeName"):
        after.pop("volumeName", None)
    if (old.get("status") or {}).get("phase") == "Bound":
        before.pop("resources", None)
        after.pop("resources", None)
    if before != after:
        yield forbidden("spec", _CLAIM_WORDS)


def volume(obj: Object) -> Errors:
    spec = obj["spec"]
    if not spec.get("accessModes"):
        yield required("spec.accessModes")
    for mode in spec.get("accessModes") or ():
        yield from one_of("spec.accessModes", mode, _MODES)
    if not spec.get("capacity"):
        yield required("spec.capacity")
        yield not_supported("spec.capacity", None, ("storage",))
    known = {
        "capacity", "accessModes", "persistentVolumeReclaimPolicy", "volumeMode", "storageClassName", "claimRef",
        "mountOptions", "nodeAffinity", "volumeAttributesClassName",
    }  # fmt: skip
    if not spec.keys() - known:
        yield required("spec", "must specify a volume type")
    policy = spec["persistentVolumeReclaimPolicy"]
    yield from one_of("spec.persistentVolumeReclaimPolicy", policy, ("Delete", "Recycle", "Retain"))


def storage_class(obj: Object) -> Errors:
    if not obj.get("provisioner"):
        yield required("provisioner")
    yield from one_of("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain"))
    yield from one_of("volumeBindingMode", obj["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer"))


def lease(obj: Object) -> Errors:
    spec = obj.get("spec") or {}
    duration = spec.get("leaseDurationSeconds")
    if duration is not None and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    yield from not_negative("spec.leaseTransitions", spec.get("leaseTransitions"))


def event(obj: Object) -> Errors:
    """Checks that an event lives where the object is that it is about; of cluster-wide ones, in `default`."""
    field = "involvedObject" if obj["apiVersion"] == "v1" else "regarding"
    about, where = (obj.get(field) or {}).get("namespace") or "", namespace_of(obj)
    if (about and about != where) or (not about and where not in ("default", "kube-system")):
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")


def resource_claim_update(new: Object, old: Object) -> Errors:
    yield from check_unchanged("spec", new["spec"], old["spec"])

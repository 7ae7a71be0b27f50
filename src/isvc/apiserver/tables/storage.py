"""Columns of volumes, claims, storage classes and CSI drivers."""

from __future__ import annotations

from isvc.apiserver.tables.columns import AGE, CREATED_AT, NAME, Column, at, count, join_values
from isvc.kube.objects import Object, dig

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(obj: Object, part: str) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in dig(obj, part, "accessModes") or ())


def _is_bound(claim: Object) -> bool:
    return bool(dig(claim, "spec", "volumeName"))


def _claim(volume: Object) -> str:
    reference = dig(volume, "spec", "claimRef") or {}
    return "/".join(reference[key] for key in ("namespace", "name") if reference.get(key))


def _flag(name: str, path: str, default: bool = False) -> Column:
    return at(name, "spec", path, default=default, kind="boolean")


def _audiences(driver: Object) -> str:
    requests = dig(driver, "spec", "tokenRequests")
    return "<unset>" if requests is None else ",".join(each.get("audience", "") for each in requests)


CLAIMS = (
    NAME,
    at("Status", "status", "phase"),
    at("Volume", "spec", "volumeName"),
    Column("Capacity", lambda o: dig(o, "status", "capacity", "storage") or "" if _is_bound(o) else ""),
    Column("Access Modes", lambda o: _modes(o, "status") if _is_bound(o) else ""),
    at("StorageClass", "spec", "storageClassName"),
    at("VolumeAttributesClass", "spec", "volumeAttributesClassName", default="<unset>"),
    AGE,
    at("VolumeMode", "spec", "volumeMode", default="<unset>", wide=True),
)
VOLUMES = (
    NAME,
    at("Capacity", "spec", "capacity", "storage"),
    Column("Access Modes", lambda o: _modes(o, "spec")),
    at("Reclaim Policy", "spec", "persistentVolumeReclaimPolicy"),
    at("Status", "status", "phase"),
    Column("Claim", _claim),
    at("StorageClass", "spec", "storageClassName"),
    at("VolumeAttributesClass", "spec", "volumeAttributesClassName", default="<unset>"),
    at("Reason", "status", "reason"),
    AGE,
    at("VolumeMode", "spec", "volumeMode", default="<unset>", wide=True),
)
STORAGE_CLASSES = (
    NAME,
    at("Provisioner", "provisioner"),
    at("ReclaimPolicy", "reclaimPolicy"),
    at("VolumeBindingMode", "volumeBindingMode"),
    Column("AllowVolumeExpansion", lambda o: bool(o.get("allowVolumeExpansion"))),
    AGE,
)
DRIVERS = (
    NAME,
    _flag("AttachRequired", "attachRequired", default=True),
    _flag("PodInfoOnMount", "podInfoOnMount"),
    _flag("StorageCapacity", "storageCapacity"),
    Column("TokenRequests", _audiences),
    _flag("RequiresRepublish", "requiresRepublish"),
    Column("Modes", lambda obj: join_values(dig(obj, "spec", "volumeLifecycleModes") or ())),
    AGE,
)
DRIVER_NODES = (NAME, count("Drivers", "spec", "drivers"), AGE)
CAPACITIES = (NAME, CREATED_AT)
ATTACHMENTS = (
    NAME,
    Column("Attacher", lambda o: dig(o, "spec", "attacher") or "", format="name"),
    at("PV", "spec", "source", "persistentVolumeName"),
    at("Node", "spec", "nodeName"),
    at("Attached", "status", "attached", default=False, kind="boolean"),
    AGE,
)
ATTRIBUTES_CLASSES = (NAME, at("DriverName", "driverName"), AGE)

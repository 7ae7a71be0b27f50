"""Columns of volumes and of what provides them."""

from __future__ import annotations

from isvc.apiserver.tables.columns import AGE, NAME, Column, at
from isvc.kube.objects import Object, dig

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _modes(obj: Object, part: str) -> str:
    return ",".join(_MODES.get(mode, mode) for mode in dig(obj, part, "accessModes") or ())


def _claim(volume: Object) -> str:
    reference = dig(volume, "spec", "claimRef") or {}
    return "/".join(reference[key] for key in ("namespace", "name") if reference.get(key))


CLAIMS = (
    NAME,
    at("Status", "status", "phase"),
    at("Volume", "spec", "volumeName"),
    at("Capacity", "status", "capacity", "storage"),
    Column("Access Modes", lambda o: _modes(o, "status")),
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
    Column("AllowVolumeExpansion", lambda o: bool(o.get("allowVolumeExpansion")), "boolean"),
    AGE,
)

"""Defaults of ConfigMaps, Secrets, volumes, claims of them and of devices, storage classes and LimitRanges."""

from __future__ import annotations

import base64

from isvc.kube.builtin.defaults.pods import round_up
from isvc.kube.objects import Object, dig

_EXACT_COUNT = "ExactCount"


def config_map(obj: Object) -> None:
    """Fills in nothing that appears in JSON: an empty map is not shown."""


def secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")
    texts = obj.pop("stringData", None)
    if texts:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def volume(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    spec.setdefault("volumeMode", "Filesystem")
    obj["status"].setdefault("phase", "Pending")
    if "hostPath" in spec:
        spec["hostPath"].setdefault("type", "")
    round_up(spec.get("capacity"))


def claim(obj: Object) -> None:
    obj["spec"].setdefault("volumeMode", "Filesystem")
    obj["status"].setdefault("phase", "Pending")
    for each in (obj["spec"].get("resources") or {}).values():
        if isinstance(each, dict):
            round_up(each)


def storage_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def driver(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("attachRequired", True)
    for name in ("podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"):
        spec.setdefault(name, False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    if not spec.get("volumeLifecycleModes"):
        spec["volumeLifecycleModes"] = ["Persistent"]


def limit_range(obj: Object) -> None:
    for limit in obj["spec"].get("limits") or ():
        if limit.get("type") == "Container":
            most, least = limit.get("max") or {}, limit.get("min") or {}
            default = {**most, **(limit.get("default") or {})}
            request = {**least, **default, **(limit.get("defaultRequest") or {})}
            if default:
                limit["default"] = default
            if request:
                limit["defaultRequest"] = request


def resource_claim(obj: Object) -> None:
    _default_requests(obj["spec"])


def resource_claim_template(obj: Object) -> None:
    _default_requests(obj["spec"]["spec"])


def _default_requests(claim: Object) -> None:
    for request in dig(claim, "devices", "requests") or ():
        for wanted in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if wanted is not None:
                wanted.setdefault("allocationMode", _EXACT_COUNT)
                if wanted["allocationMode"] == _EXACT_COUNT:
                    wanted.setdefault("count", 1)

"""Functions that presets have beside those of every template."""

from __future__ import annotations

from typing import Any

from isvc.kube import gojson
from isvc.kube.quantity import Quantity
from isvc.serving import names
from isvc.serving.templates.functions import Function
from isvc.serving.templates.values import ANY, INT64, STRING, Maybe, Value

_GRACE_SECONDS = 60
_CLEANUP_SECONDS = 5


def _child_name(parent: Value, suffix: Value) -> Value:
    return Value(STRING, names.child(parent.data, suffix.data))


def _shutdown_timeout(pod: Maybe, before_stop: Value) -> Value:
    """Returns how long a model server may take to finish its requests, of the time that Kubernetes gives its pod."""
    given = _struct(pod, "*core.PodSpec").get("terminationGracePeriodSeconds")
    grace = _GRACE_SECONDS if given is None else given
    return Value(INT64, max(grace - before_stop.data - min(_CLEANUP_SECONDS, grace), 0))


def _kv_transfer(offloading: Maybe) -> Value:
    """Returns vLLM's argument for a cache that goes on in main memory and on disk.

    It ends up between double quotes in a shell script within JSON: hence the backslashes.
    """
    spec = _struct(offloading, "*llm.KVCacheOffloadingSpec")
    if not spec:
        return Value(STRING, "")
    extra: dict[str, Any] = {"cpu_bytes_to_use": Quantity.parse(spec.get("cpu") or "0").value()}
    if spec.get("evictionPolicy"):
        extra["eviction_policy"] = spec["evictionPolicy"]
    tiers = [
        {"root_dir": f"/mnt/kv-cache-{index}", "type": "fs"}
        for index, tier in enumerate(spec.get("secondary") or [])
        if tier.get("fileSystem") is not None
    ]
    if tiers:
        extra["secondary_tiers"] = tiers
    extra["spec_name"] = "TieringOffloadingSpec"
    config = {"kv_connector": "OffloadingConnector", "kv_connector_extra_config": extra, "kv_role": "kv_both"}
    escaped = gojson.dumps(config).replace('"', r"\\\"")
    return Value(STRING, f"--kv-transfer-config '{escaped}'")


def _struct(value: Maybe, wanted: str) -> dict[str, Any]:
    if value is None or value.type.name != wanted or value.data is None:
        return {}
    found: dict[str, Any] = value.data
    return found


FUNCTIONS: dict[str, Function] = {
    "ChildName": Function(_child_name, (STRING, STRING)),
    "kvTransferConfig": Function(_kv_transfer, (ANY,)),
    "shutdownTimeout": Function(_shutdown_timeout, (ANY, INT64)),
}

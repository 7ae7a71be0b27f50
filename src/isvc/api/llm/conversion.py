"""LLM kinds from v1alpha1 to v1alpha2 and back, with nothing lost on the way.

What v1alpha2 has no field for (criticalities) waits in annotations that KServe uses too. What v1alpha1 has no field
for waits in one annotation of ours, which exists in the v1alpha1 form alone: so a client that reads, changes and
writes v1alpha1 does not destroy what others wrote in v1alpha2. A part comes back only where it still belongs.

Objects stay dicts: fields that neither version names go through unchanged.
"""

from __future__ import annotations

from typing import Any

import orjson

from isvc.api.annotations import INTERNAL
from isvc.api.resources import GROUP
from isvc.kube.objects import Object, deep_copy, dig

OLD, NEW = f"{GROUP}/v1alpha1", f"{GROUP}/v1alpha2"
KINDS = ("LLMInferenceService", "LLMInferenceServiceConfig")
CRITICALITY = f"{INTERNAL}/model-criticality"
LORA_CRITICALITIES = f"{INTERNAL}/lora-criticalities"
NEWER = f"{INTERNAL}/v1alpha2"

_POOL = ("spec", "router", "scheduler", "pool", "spec")
_ONLY_NEW = (
    ("spec", "kvCacheOffloading"),
    ("spec", "prefill", "kvCacheOffloading"),
    ("spec", "model", "confidential"),
    ("status", "router", "group"),
    ("status", "workloads"),
    ("status", "appliedConfigs"),
    ("status", "referencedBy"),
)
_ONLY_NEW_OF_ADDRESSES = ("origin", "models")
_PICKER_PORT = 9002


def convert(objects: list[Object], version: str) -> list[Object]:
    """Returns the objects in another version, `serving.kserve.io/...`. Raises `ValueError` for what is not ours."""
    return [_convert(obj, version) for obj in objects]


def _convert(obj: Object, version: str) -> Object:
    if not isinstance(obj, dict) or obj.get("kind") not in KINDS:
        raise ValueError(f"only {' and '.join(KINDS)} can be converted")
    metadata = obj.get("metadata", {})
    if not isinstance(metadata, dict) or not isinstance(metadata.get("annotations") or {}, dict):
        raise ValueError("metadata and its annotations have to be maps")
    match obj.get("apiVersion"), version:
        case (have, want) if have == want:
            return obj
        case (have, want) if (have, want) == (OLD, NEW):
            return to_v1alpha2(obj)
        case (have, want) if (have, want) == (NEW, OLD):
            return to_v1alpha1(obj)
    raise ValueError(f"cannot convert {obj.get('apiVersion')!r} to {version!r}; known are {OLD} and {NEW}")


def to_v1alpha2(obj: Object) -> Object:
    new = deep_copy(obj) | {"apiVersion": NEW}
    kept = _take_annotation(new, NEWER)
    _criticality_to_annotations(new)
    pool = _part(new, _POOL[:-1])
    if isinstance(pool.get("spec"), dict):
        pool["spec"] = _pool_to_v1(pool["spec"])
    if isinstance(kept, dict):
        _restore(new, kept)
    return new


def to_v1alpha1(obj: Object) -> Object:
    old = deep_copy(obj) | {"apiVersion": OLD}
    kept = _take_new_content(old)
    _criticality_from_annotations(old)
    pool = _part(old, _POOL[:-1])
    if isinstance(pool.get("spec"), dict):
        pool["spec"] = pool_from_v1(pool["spec"])
    if kept:
        _annotate(old, NEWER, orjson.dumps(kept, option=orjson.OPT_SORT_KEYS).decode())
    return old


def _part(obj: Any, path: tuple[str, ...]) -> Object:
    """Returns the dict at a path; an empty one, which belongs to nobody, where there is none."""
    found = dig(obj, *path)
    return found if isinstance(found, dict) else {}


def _annotate(obj: Object, key: str, value: str) -> None:
    metadata = obj.setdefault("metadata", {})
    metadata["annotations"] = (metadata.get("annotations") or {}) | {key: value}


def _take_annotation(obj: Object, key: str) -> Any:
    """Returns the JSON of an annotation, which is removed; None when there is none or it is no JSON."""
    metadata = _part(obj, ("metadata",))
    text = _part(metadata, ("annotations",)).pop(key, None)
    if text is not None and not metadata["annotations"]:
        del metadata["annotations"]
    try:
        return orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        return None


def _adapters(obj: Object) -> list[Any]:
    found = dig(obj, "spec", "model", "lora", "adapters")
    return found if isinstance(found, list) else []


def _criticality_to_annotations(obj: Object) -> None:
    if criticality := _part(obj, ("spec", "model")).pop("criticality", None):
        _annotate(obj, CRITICALITY, str(criticality))
    of_adapters = {}
    for index, adapter in enumerate(_adapters(obj)):
        if isinstance(adapter, dict) and (criticality := adapter.pop("criticality", None)):
            of_adapters[str(index)] = str(criticality)
    if of_adapters:
        _annotate(obj, LORA_CRITICALITIES, orjson.dumps(of_adapters).decode())


def _criticality_from_annotations(obj: Object) -> None:
    metadata = _part(obj, ("metadata",))
    model = dig(obj, "spec", "model")
    criticality = _part(metadata, ("annotations",)).get(CRITICALITY)
    if criticality and isinstance(model, dict):
        model["criticality"] = criticality
        del metadata["annotations"][CRITICALITY]
        if not metadata["annotations"]:
            del metadata["annotations"]
    of_adapters = _take_annotation(obj, LORA_CRITICALITIES)
    for index, adapter in enumerate(_adapters(obj)):
        if isinstance(of_adapters, dict) and isinstance(adapter, dict) and (found := of_adapters.get(str(index))):
            adapter["criticality"] = found


def _pool_to_v1(pool: Object) -> Object:
    """Turns an InferencePool's spec of the x-k8s.io group into that of k8s.io, with the defaults of the former."""
    extension = _part(pool, ("extensionRef",))
    kind = extension.get("kind") or "Service"
    port = extension.get("portNumber") or (_PICKER_PORT if kind == "Service" else None)
    picker: Object = {key: extension[key] for key in ("group", "name") if key in extension}
    picker |= {"kind": kind, "failureMode": extension.get("failureMode") or "FailClose"}
    if port is not None:
        picker["port"] = {"number": port}
    return {
        "targetPorts": [{"number": pool.get("targetPortNumber", 0)}],
        "selector": {"matchLabels": pool["selector"]} if pool.get("selector") else {},
        "endpointPickerRef": picker,
    }


def pool_from_v1(pool: Object) -> Object:
    picker = _part(pool, ("endpointPickerRef",))
    extension: Object = {key: picker[key] for key in ("group", "kind", "name", "failureMode") if key in picker}
    if (port := dig(picker, "port", "number")) is not None:
        extension["portNumber"] = port
    return {
        "targetPortNumber": dig(pool, "targetPorts", 0, "number") or 0,
        "selector": dig(pool, "selector", "matchLabels") or {},
        "extensionRef": extension,
    }


def _take_new_content(obj: Object) -> Object:
    """Removes what only v1alpha2 has, and gives it by its path."""
    kept: Object = {}
    for path in _ONLY_NEW:
        parent = _part(obj, path[:-1])
        if path[-1] in parent:
            kept[".".join(path)] = parent.pop(path[-1])
    pool = _part(obj, _POOL)
    more = {key: value for key, value in _new_of_pool(pool).items() if value}
    if more:
        kept["pool"] = more
    addresses = dig(obj, "status", "addresses")
    if isinstance(addresses, list):
        taken = [_take_of_address(address) for address in addresses]
        if any(taken):
            kept["addresses"] = [
                {"url": dig(address, "url"), **more} for address, more in zip(addresses, taken, strict=True)
            ]
    return kept


def _new_of_pool(pool: Object) -> Object:
    ports = pool.get("targetPorts")
    return {
        "appProtocol": pool.get("appProtocol") if pool.get("appProtocol") != "http" else None,
        "morePorts": ports[1:] if isinstance(ports, list) else None,
    }


def _take_of_address(address: Any) -> Object:
    if not isinstance(address, dict):
        return {}
    return {key: address.pop(key) for key in _ONLY_NEW_OF_ADDRESSES if key in address}


def _restore(obj: Object, kept: Object) -> None:
    """Puts content back where its surroundings are still there and nothing else has taken its place."""
    for path in _ONLY_NEW:
        parent, name = dig(obj, *path[:-1]), ".".join(path)
        if name in kept and isinstance(parent, dict):
            parent.setdefault(path[-1], kept[name])
    pool, of_pool = dig(obj, *_POOL), kept.get("pool")
    if isinstance(pool, dict) and isinstance(of_pool, dict):
        if of_pool.get("appProtocol"):
            pool["appProtocol"] = of_pool["appProtocol"]
        if isinstance(of_pool.get("morePorts"), list):
            pool["targetPorts"] = [*pool["targetPorts"], *of_pool["morePorts"]]
    addresses, of_addresses = dig(obj, "status", "addresses"), kept.get("addresses")
    if isinstance(addresses, list) and isinstance(of_addresses, list) and len(addresses) == len(of_addresses):
        for address, more in zip(addresses, of_addresses, strict=True):
            if isinstance(address, dict) and isinstance(more, dict) and address.get("url") == more.get("url"):
                address |= {key: more[key] for key in _ONLY_NEW_OF_ADDRESSES if key in more}

"""Methods that templates may call on an LLMInferenceService and its parts.

Go lets a template call every method of a struct, even those that change it. These are the ones that only report
something; the others are unknown here. What a method gets is the JSON of its struct, or None for a nil pointer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isvc.kube.quantity import Quantity
from isvc.serving.templates.values import BOOL, INT32, INT64, STRING, Method, Type

_STRINGS = Type("map[string]string", "map", STRING, STRING)


def _getter(key: str, result: Type = STRING) -> Method:
    return Method(lambda data: data.get(key), result)


def _holds(*keys: str) -> Method:
    return Method(lambda data: bool(_dig(data, *keys)), BOOL)


def _is_set(*keys: str) -> Method:
    return Method(lambda data: _dig(data, *keys) is not None, BOOL)


def _dig(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if data is not None else None
    return data


def _positive(*keys: str) -> Method:
    return Method(lambda data: any((_dig(data, key) or 0) > 0 for key in keys), BOOL)


def _size(parallelism: Any) -> int | None:
    data, local = _dig(parallelism, "data") or 0, _dig(parallelism, "dataLocal") or 0
    if data > 0 or local > 0:
        return max(int(max(data, 1) / max(local, 1)), 1)
    pipeline = _dig(parallelism, "pipeline") or 0
    return pipeline if pipeline > 0 else None


def _quantity(method: Callable[[Quantity], Any], result: Type) -> Method:
    return Method(lambda data: method(Quantity.parse(data or "0")), result)


METHODS: dict[str, dict[str, Method]] = {
    "meta.ObjectMeta": {
        "GetName": _getter("name"),
        "GetNamespace": _getter("namespace"),
        "GetGenerateName": _getter("generateName"),
        "GetResourceVersion": _getter("resourceVersion"),
        "GetGeneration": _getter("generation", INT64),
        "GetLabels": _getter("labels", _STRINGS),
        "GetAnnotations": _getter("annotations", _STRINGS),
    },
    "llm.ParallelismSpec": {
        "IsPipelineParallel": _positive("pipeline"),
        "IsDataParallel": _positive("data", "dataLocal"),
        "IsTensorParallel": _positive("tensor"),
        "GetSize": Method(_size, INT32.pointer()),
    },
    "llm.RouterSpec": {"HasGroup": _is_set("route", "group")},
    "llm.GatewaySpec": {"HasRefs": _holds("refs")},
    "llm.HTTPRouteSpec": {"HasRefs": _holds("refs"), "HasSpec": _is_set("spec")},
    "llm.InferencePoolSpec": {"HasRef": _holds("ref", "name")},
    "apis.URL": {"String": Method(lambda data: data or "", STRING)},
    "intstr.IntOrString": {"String": Method(lambda data: str(data or 0), STRING)},
    "resource.Quantity": {
        "String": _quantity(str, STRING),
        "Value": _quantity(Quantity.value, INT64),
        "MilliValue": _quantity(Quantity.milli, INT64),
        "IsZero": _quantity(lambda amount: not amount, BOOL),
    },
}

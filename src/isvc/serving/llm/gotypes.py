"""LLMInferenceServices as Go sees them: the names, order and types of the fields that presets ask for.

`tools/llm-types` writes the table and says how to read it. It is parsed when the first preset is rendered.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any

from isvc.kube.quantity import Quantity
from isvc.serving.templates.values import BOOL, FLOAT64, INT, INT32, INT64, STRING, UINT16, Field, Method, Type

_BASIC = {each.name: each for each in (BOOL, STRING, INT, INT32, INT64, UINT16, FLOAT64)}
_OMIT = {"": "", "?": "empty", "!": "zero", "?!": "zero"}


_STRINGS = Type("map[string]string", "map", STRING, STRING)


@cache
def go_type(name: str) -> Type:
    """Returns a named type such as `llm.LLMInferenceService`; always the same object."""
    return _table()[name]


@cache
def _table() -> dict[str, Type]:
    lines = resources.files("isvc.serving.llm").joinpath("data/types.txt").read_text().splitlines()
    headers = [line.split(" ", 1) for line in lines if not line.startswith(" ")]
    types = {name: Type(name, "struct", methods=METHODS.get(name, {})) for name, *_ in headers}
    known = _Known(types)
    for name, *shape in headers:
        if shape:
            _shape(types[name], shape[0], known)
    struct, fields = "", dict[str, list[Field]]()
    for line in lines:
        if not line.startswith(" "):
            struct = line
            continue
        fields.setdefault(struct, []).append(_field(line, known))
    for name, found in fields.items():
        types[name].fields = tuple(found)
    return types


def _shape(named: Type, shape: str, known: _Known) -> None:
    if shape.startswith("scalar "):
        named.scalar = shape.removeprefix("scalar ")
        return
    made_of = known[shape]
    named.kind, named.elem, named.key = made_of.kind, made_of.elem, made_of.key


def _field(line: str, known: _Known) -> Field:
    name, key, kind = line.split()
    bare = key.rstrip("?!")
    return Field(name.lstrip("+"), "" if bare == "-" else bare, known[kind], name[0] == "+", _OMIT[key[len(bare) :]])


class _Known(dict[str, Type]):
    """Types by what they are called, those without a name of their own made when they are first asked for."""

    def __init__(self, named: dict[str, Type]) -> None:
        super().__init__(_BASIC | named)

    def __missing__(self, text: str) -> Type:
        if text.startswith("*"):
            made = self[text[1:]].pointer()
        elif text.startswith("[]"):
            made = Type(text, "slice", self[text[2:]])
        else:
            key, elem = text.removeprefix("map[").split("]", 1)
            made = Type(text, "map", self[elem], self[key])
        self[text] = made
        return made


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


# Go lets a template call every method of a struct, even those that change it. These are the ones that only report
# something; the others are unknown here. What a method gets is the JSON of its struct, or None for a nil pointer.
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

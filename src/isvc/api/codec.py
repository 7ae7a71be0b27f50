"""Objects into typed values and back, with errors that name the field.

msgspec does the work. What it cannot know is that some structs hold the fields of a built-in type beside their own
(`Inline`): those are collected from the raw object after decoding, and laid flat again after encoding.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from isvc.api.fields import Inline, Spec
from isvc.kube.objects import Object

S = TypeVar("S", bound=Spec)


class DecodeError(ValueError):
    """An object is not of the type it claims: `path` says where, `problem` says how."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


def decode(kind: type[S], obj: Any) -> S:
    """Returns the typed value of an object. Null means absent, as in Kubernetes; unknown fields are left out."""
    try:
        value = msgspec.convert(obj, kind)
    except (msgspec.ValidationError, RecursionError):
        try:
            obj = without_nulls(obj)
            value = msgspec.convert(obj, kind)
        except msgspec.ValidationError as error:
            raise _decode_error(error) from None
        except RecursionError:
            raise DecodeError("", "nested too deeply") from None
    shape = _shape(kind)
    if shape is not None:
        _gather(shape, value, obj)
    return value


def encode(value: Spec) -> Object:
    """Returns the object of a typed value: what equals its default is left out."""
    obj: Object = msgspec.to_builtins(value)
    shape = _shape(type(value))
    if shape is not None:
        _flatten(shape, obj)
    return obj


def without_nulls(value: Any) -> Any:
    """Returns a copy in which keys that hold null are gone."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


_LOCATED = re.compile(r"^(?P<problem>.*?)(?: - at `(?:key in )?\$\.?(?P<path>.*)`)?$", re.DOTALL)
_NAMES = {"`int`": "an integer", "`str`": "a string", "`bool`": "true or false", "`object`": "an object"}
_NAMES |= {"`array`": "a list", "`float`": "a number", "`null`": "null", "`int | str`": "an integer or a string"}
_NAMES |= {"`int | float | str`": "a quantity"}


def locate(error: msgspec.ValidationError) -> tuple[str, str]:
    """Returns where in a value msgspec found something wrong, and what, in its own words."""
    match = _LOCATED.match(str(error))
    assert match is not None
    return match["path"] or "", match["problem"]


def _decode_error(error: msgspec.ValidationError) -> DecodeError:
    path, problem = locate(error)
    problem = problem.replace(" | null`", "`")
    for theirs, ours in _NAMES.items():
        problem = problem.replace(theirs, ours)
    return DecodeError(path, problem[:1].lower() + problem[1:])


class _Shape(NamedTuple):
    """Where in a struct type, at any depth, inlined fields are."""

    rest: str | None
    rest_wire: str
    known: frozenset[str]
    children: dict[str, tuple[str, bool, _Shape]]  # by wire name: attribute, in a list, shape


@cache
def _shape(kind: type[Spec], above: tuple[type[Spec], ...] = ()) -> _Shape | None:
    rest, rest_wire = None, ""
    children: dict[str, tuple[str, bool, _Shape]] = {}
    for name, wire, hint in _fields(kind):
        if _inline(hint) is not None:
            rest, rest_wire = name, wire
            continue
        for struct, listed in _structs(hint):
            below = None if struct in (*above, kind) else _shape(struct, (*above, kind))
            if below is not None:
                children[wire] = (name, listed, below)
    if rest is None and not children:
        return None
    known = frozenset(wire for _, wire, _ in _fields(kind)) - {rest_wire}
    return _Shape(rest, rest_wire, known, children)


@cache
def _fields(kind: type[Spec]) -> list[tuple[str, str, Any]]:
    """Returns attribute, wire name and type of each field; to find the types out is slow."""
    hints = get_type_hints(kind, include_extras=True)
    return [(info.name, info.encode_name, hints[info.name]) for info in msgspec.structs.fields(kind)]


def _inline(hint: Any) -> Inline | None:
    return next((extra for extra in getattr(hint, "__metadata__", ()) if isinstance(extra, Inline)), None)


def _structs(hint: Any, listed: bool = False) -> list[tuple[type[Spec], bool]]:
    if isinstance(hint, type) and issubclass(hint, Spec):
        return [(hint, listed)]
    listed = listed or get_origin(hint) is list
    return [found for argument in get_args(hint) for found in _structs(argument, listed)]


def _gather(shape: _Shape, value: Any, raw: Any) -> None:
    if shape.rest is not None:
        rest = {key: item for key, item in raw.items() if key not in shape.known}
        msgspec.structs.force_setattr(value, shape.rest, rest)
    for wire in raw.keys() & shape.children.keys():
        attribute, listed, below = shape.children[wire]
        raw_child = raw[wire]
        if raw_child is None:
            continue
        child = getattr(value, attribute)
        if listed:
            for item, raw_item in zip(child, raw_child, strict=True):
                _gather(below, item, raw_item)
        else:
            _gather(below, child, raw_child)


def _flatten(shape: _Shape, obj: Object) -> None:
    if shape.rest_wire in obj:
        rest = obj.pop(shape.rest_wire)
        obj.update(rest)
    for wire in obj.keys() & shape.children.keys():
        _, listed, below = shape.children[wire]
        if child := obj[wire]:
            for item in child if listed else (child,):
                _flatten(below, item)

"""A request body of a built-in kind, as it comes back from a server that keeps Go structs.

Kubernetes decodes a body into a struct and writes the struct: unknown fields go, nulls and empty values go unless the
struct always shows them, quantities and times get their canonical form. `shape` does the same to a dict, and says
no to a value of the wrong type in Go's words.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import datetime
from typing import Any

from isvc.kube.builtin import types
from isvc.kube.builtin.types import Field, Message
from isvc.kube.errors import BadRequest
from isvc.kube.objects import GVK, Object
from isvc.kube.quantity import Quantity, QuantityError
from isvc.kube.timestamps import timestamp

_UTC_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_RANGES = {"int32": 2**31, "int64": 2**63}
_PYTHON = {"string": str, "bool": bool}
_KEY = "\0"  # marks a map's key in a path


class WrongType(ValueError):
    """A value that the field cannot hold, in Go's words."""


class Undecodable(BadRequest):
    """A body that does not become an object of its kind; `why` is the cause alone."""

    def __init__(self, gvk: GVK, kind: str, why: str) -> None:
        super().__init__(f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {kind}: {why}')
        self.why = why


def shape(obj: Object, message: Message, unknown: list[str]) -> Object:
    """Returns the object as a struct of that type would write it; paths of unknown fields are appended to `unknown`."""
    try:
        shaped = _Shaper(unknown).struct(obj, message, top=True)
    except WrongType as error:
        gvk = GVK.of(obj)
        raise Undecodable(gvk, gvk.kind, str(error)) from None
    return {"kind": obj.get("kind"), "apiVersion": obj.get("apiVersion"), **shaped}


def shape_metadata(metadata: Any, unknown: list[str]) -> Object:
    """Returns the metadata of a custom resource, which is a struct although the rest of the object is not."""
    shaper = _Shaper(unknown)
    shaper.path.append("metadata")
    return shaper.struct(metadata or {}, types.message(types.META + "ObjectMeta"))


class _Shaper:
    def __init__(self, unknown: list[str]) -> None:
        self.unknown = unknown
        self.path: list[str] = []

    def struct(self, value: Any, message: Message, *, top: bool = False) -> Object:
        shaped: Object = {}
        by_name = message.by_name
        for key, item in value.items():
            field = by_name.get(key)
            if field is None:
                if key not in ("apiVersion", "kind") or not message.is_kind:
                    self.unknown.append(_join([*self.path, key]))
                elif not top and item:
                    shaped[key] = item
                continue
            if item is None:
                continue
            if field.kind == "string" and not field.containers and type(item) is str:  # the common case, in short
                if item or field.pointer or not field.omit_empty:
                    shaped[key] = item
                continue
            self.path.append(key)
            item = self._field(item, field, message)
            self.path.pop()
            if item or field.pointer or not field.omit_empty or _is_shown_empty(field, item):
                shaped[key] = item
        for field in message.always:
            if field.name not in shaped:
                shaped[field.name] = types.zero(field)
        return shaped

    def _field(self, value: Any, field: Field, owner: Message) -> Any:
        return self._container(value, field, field.containers, owner)

    def _container(self, value: Any, field: Field, containers: str, owner: Message) -> Any:
        if not containers:
            return self._value(value, field, owner)
        rest = containers[2:]
        if field.kind == "string" and not rest and _is_all_text(value, containers):
            return value
        if containers.startswith("[]"):
            if not isinstance(value, list):
                raise self._wrong(value, field, owner, containers)
            items = []
            for index, item in enumerate(value):
                self.path.append(f"[{index}]")
                items.append(_empty(field, rest) if item is None else self._container(item, field, rest, owner))
                self.path.pop()
            return items
        if not isinstance(value, dict):
            raise self._wrong(value, field, owner, containers)
        entries = {}
        for key, item in value.items():
            self.path.append(_KEY + key)
            entries[key] = _empty(field, rest) if item is None else self._container(item, field, rest, owner)
            self.path.pop()
        return entries

    def _value(self, value: Any, field: Field, owner: Message) -> Any:
        kind = field.kind
        if kind in _PYTHON:
            if not isinstance(value, _PYTHON[kind]):
                raise self._wrong(value, field, owner)
            return value
        if kind in _RANGES:
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            if not isinstance(value, int) or isinstance(value, bool) or not -_RANGES[kind] <= value < _RANGES[kind]:
                raise self._wrong(value, field, owner)
            return value
        if kind == "float64":
            if not isinstance(value, int | float) or isinstance(value, bool):
                raise self._wrong(value, field, owner)
            return value
        if kind == "bytes":
            return _base64(value) if isinstance(value, str) else self._refuse(value, field, owner)
        if kind in types.OPAQUE:
            return self._opaque(value, field, owner)
        if not isinstance(value, dict):
            raise self._wrong(value, field, owner)
        return self.struct(value, types.message(kind))

    def _opaque(self, value: Any, field: Field, owner: Message) -> Any:
        match field.kind:
            case types.TIME:
                return _time(value) if isinstance(value, str) else self._refuse(value, field, owner)
            case types.QUANTITY:
                return _quantity(value)
            case types.INT_OR_STRING:
                if not isinstance(value, int | str) or isinstance(value, bool):
                    raise self._wrong(value, field, owner)
                return value
            case types.PROPS_OR_ARRAY | types.PROPS_OR_BOOL | types.PROPS_OR_STRINGS:
                return self._schema(value)
            case _:
                return value

    def _schema(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.struct(value, types.message(types.PROPS))
        if isinstance(value, list):
            return [self._schema(each) for each in value]
        return value

    def _refuse(self, value: Any, field: Field, owner: Message) -> Any:
        raise self._wrong(value, field, owner)

    def _wrong(self, value: Any, field: Field, owner: Message, containers: str = "") -> WrongType:
        """Go names the fields on the way, but neither indexes nor keys."""
        path = ".".join(step for step in self.path if step[0] not in ("[", _KEY))
        return WrongType(
            f"json: cannot unmarshal {_json_kind(value)} into Go struct field {owner.go_name}.{path}"
            f" of type {_go_type(field, containers)}"
        )


def _is_shown_empty(field: Field, item: Any) -> bool:
    """Structs cannot be left out by omitempty, nor can the types that look like scalars but are structs."""
    return not field.containers and field.kind not in types.SCALARS and not (field.omit_zero and item is None)


def _is_all_text(value: Any, container: str) -> bool:
    if container == "{}":
        return isinstance(value, dict) and all(type(item) is str for item in value.values())
    return isinstance(value, list) and all(type(item) is str for item in value)


def _empty(field: Field, containers: str) -> Any:
    return types.zero(field._replace(containers=containers, pointer=False))


def _join(path: list[str]) -> str:
    text = ""
    for step in path:
        name = step.removeprefix(_KEY)
        text += name if step.startswith("[") or not text else f".{name}"
    return text


def _time(value: str) -> str:
    if _UTC_SECONDS.fullmatch(value):
        return value
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None or "T" not in value:
            raise ValueError
    except ValueError:
        raise WrongType(
            f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}" as "2006"'
        ) from None
    return timestamp(moment)


def _quantity(value: Any) -> str:
    try:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise QuantityError
        return str(Quantity.parse(value))
    except QuantityError:
        raise WrongType(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


def _base64(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error:
        bad = next((i for i, c in enumerate(value) if not (c.isalnum() or c in "+/=")), len(value) // 4 * 4)
        raise WrongType(f"illegal base64 data at input byte {bad}") from None
    return value


def _json_kind(value: Any) -> str:
    match value:
        case bool():
            return "bool"
        case int() | float():
            return f"number {value}" if isinstance(value, float) or abs(value) >= 2**31 else "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def _go_type(field: Field, containers: str) -> str:
    if field.kind == types.INT_OR_STRING:
        return "int32"
    if field.kind in types.SCALARS:
        base = "[]uint8" if field.kind == "bytes" else field.kind
    else:
        package, _, name = field.kind.rpartition(".")
        base = f"{package.rpartition('.')[2]}.{name}"
    return containers.replace("{}", "map[string]") + base

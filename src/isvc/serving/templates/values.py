"""Values with the types that Go would give them.

A template behaves by the type of what it meets: a field that a struct does not have is an error, a pointer cannot be
compared with a number, a map answers a missing key. So a value here is JSON-like data seen through a `Type`, and fields
are typed as they are reached: nothing is converted that a template does not ask for. Go's invalid value is None.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

BASIC = ("bool", "int", "uint", "float", "string")
_ZEROS: dict[str, Any] = {"bool": False, "int": 0, "uint": 0, "float": 0.0, "string": ""}


class Field(NamedTuple):
    """A field of a struct. The fields of an embedded one are the outer one's too; without a key it shares its data."""

    name: str
    key: str
    type: Type
    embedded: bool = False
    omit: str = ""  # "empty" or "zero": when JSON leaves it out


class Method(NamedTuple):
    """A method without arguments, on what is addressable or pointed at; a nil pointer is a value whose data is None."""

    call: Callable[[Any], Any]
    result: Type


@dataclass(eq=False, slots=True)
class Type:
    """A Go type. `kind` is one of `BASIC`, or map, slice, struct, pointer."""

    name: str
    kind: str
    elem: Type | None = None
    key: Type | None = None
    fields: tuple[Field, ...] = ()
    methods: dict[str, Method] = field(default_factory=dict)
    scalar: str = ""  # a struct that JSON writes as one value, such as a quantity
    ways: dict[str, tuple[Field, ...]] = field(default_factory=dict)  # to fields that were looked for
    reached: dict[str, tuple[tuple[Field, ...], Method]] | None = None  # methods, its own and those of embedded structs

    def pointer(self) -> Type:
        return Type("*" + self.name, "pointer", self)

    def zero(self) -> Any:
        return {} if self.kind == "struct" and not self.scalar else _ZEROS.get(self.kind)

    def find(self, name: str) -> tuple[Field, ...]:
        """Returns the way to a field, through embedded structs: the nearest one, unless two are equally near."""
        way = self.ways.get(name) or self._search(name)
        if way:
            self.ways[name] = way
        return way

    def _search(self, name: str) -> tuple[Field, ...]:
        level: list[tuple[tuple[Field, ...], Type]] = [((), self)]
        while level:
            found = [(*way, each) for way, struct in level for each in struct.fields if each.name == name]
            if found:
                return found[0] if len(found) == 1 else ()
            level = list(_embedded_types(level))
        return ()

    def all_fields(self) -> Iterator[Field]:
        """Yields its own fields and those of embedded structs."""
        yield from self.fields
        for _, inner in _embedded_types([((), self)]):
            yield from inner.all_fields()

    def method(self, name: str) -> tuple[tuple[Field, ...], Method] | None:
        """Returns a method and the way to it, through embedded structs: the nearest one."""
        if self.reached is None:
            self.reached = self._methods()
        return self.reached.get(name)

    def _methods(self) -> dict[str, tuple[tuple[Field, ...], Method]]:
        found: dict[str, tuple[tuple[Field, ...], Method]] = {}
        level: list[tuple[tuple[Field, ...], Type]] = [((), self)]
        while level:
            for way, struct in level:
                found = {name: (way, method) for name, method in struct.methods.items()} | found
            level = list(_embedded_types(level))
        return found


def _embedded_types(level: list[tuple[tuple[Field, ...], Type]]) -> Iterator[tuple[tuple[Field, ...], Type]]:
    for way, struct in level:
        for each in struct.fields:
            if each.embedded:
                inner = each.type.elem if each.type.kind == "pointer" else each.type
                if inner is not None:
                    yield (*way, each), inner


BOOL, STRING = Type("bool", "bool"), Type("string", "string")
INT, INT32, INT64 = Type("int", "int"), Type("int32", "int"), Type("int64", "int")
UINT8, UINT16, FLOAT64 = Type("uint8", "uint"), Type("uint16", "uint"), Type("float64", "float")
ANY = Type("interface {}", "interface")
REFLECTED = Type("reflect.Value", "reflected")
"""Parameters of these two types take anything."""


@dataclass(frozen=True, slots=True)
class Value:
    type: Type
    data: Any
    place: Hashable = None
    """Where an addressable value is; two pointers are equal when they are to the same place."""

    @property
    def is_nil(self) -> bool:
        return self.data is None and self.type.kind in ("pointer", "map", "slice")

    def target(self) -> Value:
        """Returns what a pointer that is not nil points to."""
        assert self.type.elem is not None
        return Value(self.type.elem, self.data, ("*", self.place))

    def field(self, each: Field) -> Value:
        data = self.data if not each.key else self.data.get(each.key)
        addressable = self.place is not None
        place = (self.place, each.name) if addressable or (each.embedded and each.type.kind == "pointer") else None
        return Value(each.type, each.type.zero() if data is None else data, place)

    def follow(self, way: tuple[Field, ...]) -> Value:
        value = self
        for each in way:
            value = (value.target() if value.type.kind == "pointer" else value).field(each)
        return value

    def items(self) -> Iterator[tuple[Value, Value]]:
        """Yields keys and elements of a map in order of its keys, or indices and elements of a slice."""
        elem, data = self.type.elem, self.data or ()
        assert elem is not None
        if isinstance(data, Mapping):
            for name in sorted(data, key=str.encode):
                yield Value(self.type.key or STRING, name), element(elem, data[name])
        else:
            for index, each in enumerate(data):
                yield Value(INT, index), element(elem, each, (id(data), index))


Maybe: TypeAlias = Value | None


def element(kind: Type, data: Any, place: Hashable = None) -> Value:
    if kind is ANY:
        return untyped_value(data, place)
    return Value(kind, kind.zero() if data is None else data, place)


def indirect(value: Value) -> Value:
    """Returns the end of pointers, which is a nil pointer when there is one."""
    while value.type.kind == "pointer" and value.data is not None:
        value = value.target()
    return value


def is_true(value: Maybe) -> bool:
    if value is None:
        return False
    if value.type.kind in ("struct", "pointer"):
        return value.type.kind == "struct" or value.data is not None
    return bool(value.data)


class Fields(dict[str, Any]):
    """A Go struct made of Python values: unlike a map, asking it for a field that it does not have is an error."""


def typed_value(value: Any, place: Hashable = None) -> Value:
    """Returns a Python value with the type Go would have for it."""
    return Value(_type_of(value), value, place)


def untyped_value(value: Any, place: Hashable = None) -> Value:
    """Returns a Python value as Go reads YAML without a type: maps and slices whose elements may be anything."""
    if isinstance(value, float):
        return Value(FLOAT64, value, place)
    if isinstance(value, str | bool | int):
        return typed_value(value, place)
    return Value(_collection("slice" if isinstance(value, list) else "map", ANY), value, place)


def _type_of(value: Any) -> Type:
    if isinstance(value, str):
        return STRING
    if isinstance(value, Fields):
        return _struct(tuple((name, _type_of(each)) for name, each in value.items()))
    if isinstance(value, Mapping):
        return _collection("map", _type_of(next(iter(value.values()), "")))
    if isinstance(value, Sequence):
        return _collection("slice", _type_of(value[0] if value else ""))
    return BOOL if isinstance(value, bool) else INT


@lru_cache(maxsize=64)
def _struct(fields: tuple[tuple[str, Type], ...]) -> Type:
    return Type("struct", "struct", fields=tuple(Field(name, name, kind) for name, kind in fields))


@lru_cache(maxsize=64)
def _collection(kind: str, elem: Type) -> Type:
    return Type(kind, kind, elem, STRING)


class Absent:
    """No value was piped."""


ABSENT = Absent()
Piped: TypeAlias = Value | Absent | None


def through_pointer(value: Value, way: tuple[Field, ...]) -> bool:
    """Returns whether what the way leads to is reached through a pointer."""
    return value.type.kind == "pointer" or any(each.type.kind == "pointer" for each in way)


def size_of(value: Maybe) -> int:
    """Returns how many characters or items a value has, which a function may walk through."""
    return len(value.data) if value is not None and isinstance(value.data, str | list | dict) else 0

"""The structural schema of our types: what CRDs carry, and what the defaulter completes objects with.

Types we did not write come from Kubernetes' own schemas; other projects' (`Definition` names without `io.k8s`) from
this package's data. Schemas share parts: treat them as read-only.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import linecache
import sys
from functools import cache
from importlib import resources
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import orjson

from isvc.api import pod_fields
from isvc.api.fields import (
    INT_OR_STRING,
    LOOSE,
    QUANTITY_PATTERN,
    REQUIRED,
    SCHEMALESS,
    Definition,
    Inline,
    Spec,
    Templated,
)
from isvc.api.fields import Schema as Marks
from isvc.api.meta import Kind, ObjectMeta
from isvc.kube.schemas import Schema, change_inner, definition

_SCALARS: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
}
_OPEN: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_OF_ALL_KINDS = {"apiVersion": "Group and version of the object.", "kind": "Kind of the object."}


@cache
def schema_for(kind: type[Spec], described: bool = False) -> Schema:
    """Returns the schema of a struct; with its docstrings as descriptions, which takes reading the source."""
    hints = get_type_hints(kind, include_extras=True)
    notes = field_notes(kind) if described else {}
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for info in msgspec.structs.fields(kind):
        hint, marks = unwrap(hints[info.name])
        inline = next((mark for mark in marks if isinstance(mark, Inline)), None)
        if inline is not None:
            properties = _inline_properties(inline, described) | properties
            required += inline.required
            continue
        schema = _schema(hint, marks, described)
        if note := notes.get(info.name):
            schema = schema | {"description": note}
        properties[info.encode_name] = schema
        if REQUIRED in marks:
            required.append(info.encode_name)
    result: Schema = {"type": "object"}
    if described:
        result["description"] = " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())
    if issubclass(kind, Kind):
        notes_of_all = {name: {"description": note} if described else {} for name, note in _OF_ALL_KINDS.items()}
        properties |= {name: {"type": "string"} | note for name, note in notes_of_all.items()}
    result["properties"] = dict(sorted(properties.items()))
    if required:
        result["required"] = sorted(required)
    return result | getattr(kind, "__schema__", {})


def unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Returns a hint without its annotations and without None, and the annotations found."""
    marks: tuple[Any, ...] = ()
    while True:
        if hasattr(hint, "__metadata__"):
            marks = (*hint.__metadata__, *marks)
            hint = hint.__origin__
        elif get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint):
            hint = Union[tuple(each for each in get_args(hint) if each is not NoneType)]  # noqa: UP007
        else:
            return hint, marks


def _schema(hint: Any, marks: tuple[Any, ...], described: bool) -> Schema:
    schema = _base(hint, marks, described)
    for mark in marks:
        if isinstance(mark, Marks):
            schema = schema | mark.attributes
        elif isinstance(mark, Templated):
            for path in mark.paths:
                schema = _with_templates(schema, path.split("."))
        elif mark is LOOSE:
            schema = _loosen(schema)
    return schema


def _base(hint: Any, marks: tuple[Any, ...], described: bool) -> Schema:
    if SCHEMALESS in marks:
        return _OPEN
    named = next((mark for mark in marks if isinstance(mark, Definition)), None)
    if named is not None:
        return _definition_schema(named, described)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if hint is ObjectMeta:
        return {"type": "object"}
    if isinstance(hint, type) and issubclass(hint, Spec):
        return schema_for(hint, described)
    if get_origin(hint) is list:
        return {"type": "array", "items": _schema(*unwrap(get_args(hint)[0]), described)}
    if get_origin(hint) is dict:
        inner, inner_marks = unwrap(get_args(hint)[1])
        if inner is Any:
            return {"type": "object", **_OPEN}
        return {"type": "object", "additionalProperties": _schema(inner, inner_marks, described)}
    return {}


def _inline_properties(inline: Inline, described: bool) -> dict[str, Schema]:
    properties: dict[str, Schema] = structural(inline.definition)["properties"]
    if described:
        properties = pod_fields.describe(inline.definition, properties)
    chosen = {name: properties[name] for name in inline.only or properties}
    for name in inline.plain:
        chosen[name] = {key: value for key, value in chosen[name].items() if not key.startswith("x-kubernetes-")}
    return chosen


def _definition_schema(named: Definition, described: bool) -> Schema:
    schema = structural(named.name)
    if described and "properties" in schema:
        schema = schema | {"properties": pod_fields.describe(named.name, schema["properties"])}
    if named.required is not None:
        schema = {key: value for key, value in schema.items() if key != "required"}
        if named.required:
            schema["required"] = list(named.required)
    return schema


def _loosen(component: Schema) -> Schema:
    """Returns a component that asks for less: neither for fields that its defaulter fills nor for ports of probes.

    Ephemeral containers are for running pods alone, so a component has none.
    """
    properties = dict(component["properties"])
    properties.pop("ephemeralContainers", None)
    for name, schema in properties.items():
        loose = _without_required(schema)
        if "livenessProbe" in loose.get("properties", {}):
            loose = loose | {"properties": _with_loose_probes(loose["properties"], "httpGet", "tcpSocket")}
        elif name == "containers":
            items = schema["items"]
            loose = loose | {"items": items | {"properties": _with_loose_probes(items["properties"], "httpGet")}}
        properties[name] = loose
    return component | {"properties": properties}


def _with_loose_probes(container: dict[str, Schema], *handlers: str) -> dict[str, Schema]:
    loose = dict(container)
    for name in ("livenessProbe", "readinessProbe"):
        probe = dict(loose[name]["properties"])
        for handler in handlers:
            probe[handler] = _without_required(probe[handler])
        loose[name] = loose[name] | {"properties": probe}
    return loose


def _without_required(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key != "required"}


def _with_templates(schema: Schema, path: list[str]) -> Schema:
    if not path:
        return _formless(schema)
    properties = schema["properties"]
    return schema | {"properties": properties | {path[0]: _with_templates(properties[path[0]], path[1:])}}


_FORM = {"pattern", "minLength", "minItems", "minProperties", "x-kubernetes-validations"}


def _formless(schema: Schema) -> Schema:
    """Returns the schema, or where its parts ask for a form, one that does not; unchanged parts are shared."""
    result = {key: value for key, value in schema.items() if key not in _FORM} | change_inner(schema, _formless)
    return schema if result == schema else result


@cache
def structural(name: str) -> Schema:
    """Returns a type we did not write, in the form that CRDs take."""
    known = definition(name) if name.startswith("io.k8s.") else _others().get(name)
    if known is None:
        raise LookupError(f"no schema of {name}")
    return _structural(known, "") if name.startswith("io.k8s.") else known


@cache
def _others() -> dict[str, Schema]:
    packed = resources.files("isvc.api").joinpath("data/schemas.json").read_bytes()
    data: dict[str, Schema] = orjson.loads(packed)
    return data


def _structural(schema: Schema, inside: str) -> Schema:
    """Writes Kubernetes' notation in that of CRDs; `inside` is how the schema is used (`required`, `items`, ...)."""
    if schema.get("x-kubernetes-int-or-string"):
        pattern = {"pattern": QUANTITY_PATTERN} if schema.get("format") == "quantity" else {}
        return INT_OR_STRING | pattern
    result = {
        key: value
        for key, value in schema.items()
        if not key.startswith("x-kubernetes-patch") and not (key == "default" and (inside or value == {}))
    }
    required = schema.get("required", ())
    if required:
        result["required"] = sorted(required)
    if "managedFields" in schema.get("properties", ()):
        return {"type": "object"}  # metadata inside an object is the API server's business
    if "properties" in schema:
        result["properties"] = {
            name: _structural(each, "required" if name in required else "")
            for name, each in schema["properties"].items()
        }
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            result[inner] = _structural(schema[inner], inner)
    return schema if result == schema else result


@cache
def field_notes(kind: type[Spec]) -> dict[str, str]:
    """Returns the docstrings of fields, own and inherited."""
    notes: dict[str, str] = {}
    for cls in reversed(kind.__mro__):
        if not issubclass(cls, Spec) or cls is Spec:
            continue
        body = _classes(cls.__module__)[cls.__name__].body
        for before, after in itertools.pairwise(body):
            match before, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(note))):
                    notes[name] = " ".join(note.split())
                case _:
                    pass
    return notes


@cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {each.name: each for each in tree.body if isinstance(each, ast.ClassDef)}


def forget_schemas() -> None:
    """Lets go of what only the making of CRDs needs: sources, descriptions and the parts of schemas."""
    for each in (schema_for, structural, field_notes, _classes):
        each.cache_clear()
    linecache.clearcache()

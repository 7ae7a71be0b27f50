"""Schemas as they are published: the built-in definitions with their references, and those of custom resources."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import orjson

from isvc.apiserver.resources.description import Description
from isvc.kube.builtin.types import INT_OR_STRING, META, QUANTITY
from isvc.kube.objects import Object
from isvc.kube.schemas import Schema, definition_name, kinds

_GVK = "x-kubernetes-group-version-kind"


class Dialect(NamedTuple):
    """How the two versions of OpenAPI differ."""

    number: int
    prefix: str

    def reference(self, name: str, beside: Object) -> Object:
        """Returns a reference; version 3 needs a wrapper to say something beside it."""
        target = {"$ref": self.prefix + name}
        if self.number == 2 or not beside:
            return {**target, **(beside if self.number == 2 else {})}
        return {"allOf": [target], **beside}


V2 = Dialect(2, "#/definitions/")
V3 = Dialect(3, "#/components/schemas/")


def publish(name: str, schema: Schema, dialect: Dialect) -> Object:
    """Returns a built-in definition as it is published."""
    text = {"description": schema["description"]} if "description" in schema else {}
    match name:
        case n if n == INT_OR_STRING:
            either = [{"type": "integer"}, {"type": "string"}]
            return {
                "format": "int-or-string",
                **text,
                **({"oneOf": either} if dialect.number == 3 else {"type": "string"}),
            }
        case n if n == QUANTITY:
            either = [{"type": "string"}, {"type": "number"}]
            return {"oneOf": either, **text} if dialect.number == 3 else {"type": "string"}
        case _:
            shown = _publish_schema(schema, dialect)
            known = _group_version_kinds().get(name)
            return {**shown, _GVK: known} if known else shown


def _publish_schema(schema: Schema, dialect: Dialect) -> Object:
    if "$ref" in schema:
        return dialect.reference(schema["$ref"], {key: value for key, value in schema.items() if key != "$ref"})
    shown = {key: value for key, value in schema.items() if key != "x-kubernetes-preserve-unknown-fields"}
    if "properties" in schema:
        shown["properties"] = {key: _publish_schema(each, dialect) for key, each in schema["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            shown[inner] = _publish_schema(schema[inner], dialect)
    return shown


@cache
def _group_version_kinds() -> dict[str, list[Object]]:
    found: dict[str, list[Object]] = {}
    for gvk in kinds():
        name = definition_name(gvk)
        if name:
            found.setdefault(name, []).append(gvk._asdict())
    return found


def reachable_definitions(roots: Iterable[str], definitions: dict[str, Schema]) -> list[str]:
    """Returns the definitions that the roots refer to, and the roots."""
    found: dict[str, None] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = None
            waiting.extend(_references(definitions[name]))
    return list(found)


def _references(schema: Any) -> Iterable[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"]
        for each in (schema.get("properties") or {}).values():
            yield from _references(each)
        for inner in ("items", "additionalProperties"):
            yield from _references(schema.get(inner))


def name_of_kind(description: Description) -> str:
    """`io.kserve.serving.v1beta1.InferenceService`: the group's domain reversed, for custom resources."""
    gvk = description.gvk
    built_in = None if description.custom else definition_name(gvk)
    return built_in or ".".join([*reversed(gvk.group.split(".")), gvk.version, gvk.kind])


def custom_schemas(description: Description, dialect: Dialect) -> dict[str, Object]:
    """Returns the schemas of a custom resource and its list."""
    gvk, name = description.gvk, name_of_kind(description)
    own: Schema = getattr(description.strategy, "own_schema", {})
    every = _type_and_metadata("io.k8s.api.core.v1.Pod", "ObjectMeta", dialect)
    properties = {**(own.get("properties") or {}), **every}
    items = {"type": "array", "items": dialect.reference(name, {})}
    listed = {**_type_and_metadata("io.k8s.api.core.v1.PodList", "ListMeta", dialect), "items": items}
    list_kind = {"group": gvk.group, "version": gvk.version, "kind": description.list_kind_name}
    return {
        name: {**own, "properties": properties, _GVK: [gvk._asdict()]},
        f"{name}List": {"type": "object", "required": ["items"], "properties": listed, _GVK: [list_kind]},
    }


def _type_and_metadata(like: str, metadata: str, dialect: Dialect) -> Object:
    """Returns the fields that every object or list has, described as those of a built-in one."""
    fields = ("apiVersion", "kind", "metadata")
    texts = {each: {"description": field_description(like, each)} if dialect is V3 else {} for each in fields}
    return {
        "apiVersion": {"type": "string", **texts["apiVersion"]},
        "kind": {"type": "string", **texts["kind"]},
        "metadata": dialect.reference(META + metadata, texts["metadata"]),
    }


def describe(name: str, schema: Schema) -> Schema:
    """Returns a built-in definition with descriptions, and the values that a field may have."""
    known = _descriptions().get(name)
    if known is None:
        return schema
    shown: Schema = {"description": known["description"], **schema} if known["description"] else dict(schema)
    if "properties" in schema:
        fields = known["fields"]
        shown["properties"] = {key: {**fields.get(key, {}), **each} for key, each in schema["properties"].items()}
    return shown


def field_description(name: str, field: str) -> str:
    """Returns the description of one field of a built-in definition."""
    return str(_descriptions()[name]["fields"][field]["description"])


@cache
def _descriptions() -> dict[str, Any]:
    packed = resources.files("isvc.apiserver").joinpath("data/descriptions.json.gz").read_bytes()
    unpacked: dict[str, Any] = orjson.loads(gzip.decompress(packed))
    return unpacked

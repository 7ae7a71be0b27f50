"""The structure of Kubernetes' built-in kinds: types, formats, list and map kinds, merge keys.

Strategic merge, server-side apply, pruning and protobuf all need to know what shape a Pod has. The facts come from
Kubernetes' own OpenAPI documents (`tools/kubernetes-schemas` writes the package data) and are read on first use. A
reference is replaced by the dict it names, so schemas share parts and may be cyclic: walk them along with a value.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Any, Final, TypeAlias

import orjson

from isvc.kube.objects import GVK

Schema: TypeAlias = dict[str, Any]

RELEASE: Final = "v1.35.4"  # of Kubernetes, whose kinds these are


def schema_of(gvk: GVK) -> Schema | None:
    """Returns the schema of a built-in kind, or None for a kind that Kubernetes does not bring."""
    name = definition_name(gvk)
    return definition(name) if name else None


def definition_name(gvk: GVK) -> str | None:
    """`io.k8s.api.apps.v1.Deployment` for apps/v1 Deployment."""
    name: str | None = _data()["kinds"].get("/".join(gvk))
    return name


@cache
def definition(name: str) -> Schema | None:
    """Returns a named part of the API, such as `io.k8s.api.core.v1.PodSpec`; the same dict at every call."""
    with _LINKING:
        return _link(name) if name in _data()["definitions"] else None


def raw_definitions() -> dict[str, Schema]:
    """Returns every definition with its references (`$ref` is a bare name), for publishing. Do not modify."""
    definitions: dict[str, Schema] = _data()["definitions"]
    return definitions


def kinds() -> list[GVK]:
    """Returns every built-in kind that has a schema."""
    return [GVK(*key.split("/")) for key in _data()["kinds"]]


@cache
def _data() -> dict[str, Any]:
    packed = resources.files("isvc.kube").joinpath("data/schemas.json.gz").read_bytes()
    data: dict[str, Any] = orjson.loads(gzip.decompress(packed))
    return data


_LINKED: dict[str, Schema] = {}
_LINKING = threading.RLock()  # a cyclic schema is known before it is complete, and no other thread may see it so


def _link(name: str) -> Schema:
    known = _LINKED.get(name)
    if known is None:
        known = _LINKED[name] = {}
        known.update(_resolve(_data()["definitions"][name]))
    return known


def _resolve(schema: Schema) -> Schema:
    """Replaces references; keywords beside a reference (a patch strategy) make a copy carrying them."""
    if "$ref" in schema:
        target = _link(schema["$ref"])
        beside = {key: value for key, value in schema.items() if key not in ("$ref", "default")}
        return {**target, **beside} if beside else target
    return schema | change_inner(schema, _resolve)


def change_inner(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Returns the parts of a schema in which there are schemas, each of these changed."""
    inner = ("items", "additionalProperties")
    changed = {name: change(schema[name]) for name in inner if isinstance(schema.get(name), dict)}
    if "properties" in schema:
        changed["properties"] = {name: change(each) for name, each in schema["properties"].items()}
    return changed

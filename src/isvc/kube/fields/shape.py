"""How a value is made up according to its schema: which of its parts can have managers of their own.

Lists are atomic unless the schema makes them a set or keys their items; maps are made of their entries unless the
schema calls them atomic. Where there is no schema, maps are made of their entries and lists are atomic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from isvc.kube.fields.fieldset import LEAF, FieldSet, Node, branch
from isvc.kube.objects import Object
from isvc.kube.schemas import Schema

UNKNOWN: Final[Schema] = {}
_METADATA: Final[Schema] = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("generateName", "deletionTimestamp")},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
        },
    },
}
# What nobody manages but the API server.
_UNMANAGED: Final = frozenset({"apiVersion", "kind"})
_UNMANAGED_METADATA: Final = frozenset(
    {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName"}
    | {"generation", "managedFields", "resourceVersion"}
)
# Fields that Kubernetes' own types hold by value: present, although empty, in an object that was never set.
_HELD_BY_VALUE: Final = frozenset({"loadBalancer", "metadata", "spec", "status", "strategy", "updateStrategy"})
_BUILT_IN_GROUPS: Final = frozenset(
    {"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "autoscaling"}
    | {"batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io"}
    | {"networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io", "scheduling.k8s.io"}
    | {"storage.k8s.io"}
)


class ShapeError(ValueError):
    """A list item has no key, or two have the same."""


def with_metadata(schema: Schema | None) -> Schema:
    """Returns the schema of an object, with what every object's metadata looks like."""
    return {**(schema or {}), "properties": {**((schema or {}).get("properties") or {}), "metadata": _METADATA}}


def managed_part(obj: Object) -> Object:
    """Returns the object without what the API server alone keeps."""
    part = {key: value for key, value in obj.items() if key not in _UNMANAGED}
    metadata = obj.get("metadata") or {}
    part["metadata"] = {key: value for key, value in metadata.items() if key not in _UNMANAGED_METADATA}
    return part


def unmanaged_metadata(obj: Object) -> Object:
    metadata = obj.get("metadata") or {}
    return {key: value for key, value in metadata.items() if key in _UNMANAGED_METADATA}


def blank(schema: Schema, api_version: str) -> Object:
    """Returns what an object consists of before anything is set: for a built-in kind what its Go type always has.

    That is why nobody ever comes to manage `spec` itself. For a custom resource it is nothing.
    """
    if api_version.rpartition("/")[0] not in _BUILT_IN_GROUPS:
        return {"metadata": {}}
    return _zero(schema)


def _zero(schema: Schema) -> Object:
    required = schema.get("required") or ()
    parts: Object = {}
    for name, field in (schema.get("properties") or {}).items():
        if field.get("type") == "object" and "properties" in field and (name in required or name in _HELD_BY_VALUE):
            parts[name] = {} if name == "metadata" else _zero(field)
        elif name in required:
            parts[name] = None
    return parts


def inner(schema: Schema, key: str) -> tuple[Schema, bool]:
    """Returns the schema of an entry of a map, and whether it is a named field rather than any key."""
    properties = schema.get("properties")
    if properties is not None and key in properties:
        return properties[key], True
    other = schema.get("additionalProperties")
    return (other if isinstance(other, dict) else UNKNOWN), False


def is_atomic_map(schema: Schema) -> bool:
    return schema.get("x-kubernetes-map-type") == "atomic"


def list_keys(schema: Schema) -> tuple[str, ...] | None:
    """Returns the keys of a keyed list's items, () for a set, None for an atomic list."""
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        return tuple(schema.get("x-kubernetes-list-map-keys") or ())
    if kind == "set":
        return ()
    if kind is None and str(schema.get("x-kubernetes-patch-strategy", "")).startswith("merge"):
        key = schema.get("x-kubernetes-patch-merge-key")
        return (key,) if key else ()
    return None


def element_of(item: Any, keys: tuple[str, ...], schema: Schema) -> str:
    """Returns the path element of a list item: its keys, or in a set its value."""
    if not keys:
        if item is None or isinstance(item, dict | list):
            raise ShapeError("a set may only have scalar values")
        return "v:" + orjson.dumps(item).decode()
    if not isinstance(item, dict):
        raise ShapeError("an item of a keyed list has to be a map")
    found = {}
    for key in sorted(keys):
        value = item.get(key)
        if value is None:
            value = inner(schema.get("items") or UNKNOWN, key)[0].get("default")
        if value is not None:
            found[key] = value
    if not found:
        raise ShapeError(f"an item of a keyed list omits all key fields {list(keys)}")
    return "k:" + orjson.dumps(found).decode()


def elements(items: list[Any], schema: Schema, keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    return ((element_of(item, keys, schema), item) for item in items)


def fields_of(obj: Object, schema: Schema | None) -> FieldSet:
    """Returns the fields that an applied configuration claims."""
    claimed = _claimed_entries(managed_part(obj), with_metadata(schema))
    return FieldSet({key: node for key, node in claimed.items() if key != "f:metadata" or node})


def _claimed_node(value: Any, schema: Schema) -> Node | None:
    """Returns the node below a value that is made of parts; None for one that is not, or has none."""
    if isinstance(value, dict):
        return _claimed_entries(value, schema) if value and not is_atomic_map(schema) else None
    keys = list_keys(schema) if isinstance(value, list) else None
    if keys is None:
        return None
    item_schema = schema.get("items") or UNKNOWN
    return {
        element: branch(_claimed_node(item, item_schema) or {}, member=True)
        for element, item in elements(value, schema, keys)
    }


def _claimed_entries(value: Object, schema: Schema) -> Node:
    node: Node = {}
    for key, entry in value.items():
        entry_schema, named = inner(schema, key)
        children = _claimed_node(entry, entry_schema)
        if children is None:
            node[f"f:{key}"] = LEAF
        elif children or not named:
            node[f"f:{key}"] = branch(children, member=not named)
    return node

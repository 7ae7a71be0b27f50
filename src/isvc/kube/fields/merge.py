"""Merging an applied configuration into an object, and taking fields out of one, along the schema."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, Final

from isvc.kube.fields.fieldset import FieldSet, Node, is_member
from isvc.kube.fields.shape import UNKNOWN, ShapeError, elements, inner, is_atomic_map, list_keys
from isvc.kube.objects import Object
from isvc.kube.schemas import Schema

_GONE: Final = object()


def merge(live: Object, applied: Object, schema: Schema) -> Object:
    """Returns the live object with the applied values over it."""
    result = dict(live)
    for key, value in applied.items():
        result[key] = _merge(live[key], value, inner(schema, key)[0]) if key in live else value
    return result


def _merge(live: Any, applied: Any, schema: Schema) -> Any:
    if isinstance(live, dict) and live and not is_atomic_map(schema):
        if isinstance(applied, dict):
            return merge(live, applied, schema)
        if applied is None:
            return live
    if isinstance(live, list) and live and list_keys(schema) is not None:
        if isinstance(applied, list):
            return _merge_items(live, applied, schema)
        if applied is None:
            return live
    return applied


def _merge_items(live: list[Any], applied: list[Any], schema: Schema) -> list[Any]:
    """Puts applied items in their order; items of others keep their place relative to those they stood next to."""
    keys = list_keys(schema) or ()
    item_schema = schema.get("items") or UNKNOWN
    mine = dict(elements(applied, schema, keys))
    if len(mine) < len(applied):
        raise ShapeError("duplicate entries for key in an applied list")
    theirs = list(elements(live, schema, keys))
    known = dict(theirs)
    times = Counter(element for element, _ in theirs)
    order, shared = list(mine), deque(element for element in mine if element in known)
    result: list[Any] = []
    placed: set[str] = set()

    def place(element: str) -> None:
        placed.add(element)
        mergeable = times[element] == 1
        result.append(_merge(known[element], mine[element], item_schema) if mergeable else mine[element])
        if shared and shared[0] == element:
            shared.popleft()

    left, right = 0, 0
    while left < len(theirs) or right < len(order):
        if left < len(theirs):
            element, item = theirs[left]
            if element not in mine:
                result.append(item)
                left += 1
                continue
            if element in placed or (right < len(order) and shared and shared[0] != element):
                left += 1
                continue
            if right < len(order) and order[right] == element:
                left += 1
        if right < len(order):
            place(order[right])
            right += 1
    return result


def remove(obj: Object, fields: FieldSet, schema: Schema) -> Object:
    """Returns the object without the given fields."""
    removed: Object = _remove(obj, fields.node, schema)
    return removed


def _remove(value: Any, fields: Node, schema: Schema) -> Any:
    if isinstance(value, dict):
        if is_atomic_map(schema):
            return _GONE
        entries = (
            (key, _remove_node(entry, fields.get(f"f:{key}"), inner(schema, key)[0])) for key, entry in value.items()
        )
        return {key: entry for key, entry in entries if entry is not _GONE}
    if isinstance(value, list):
        keys = list_keys(schema)
        if keys is None:
            return _GONE
        item_schema = schema.get("items") or UNKNOWN
        items = (
            _remove_node(item, fields.get(element), item_schema) for element, item in elements(value, schema, keys)
        )
        return [item for item in items if item is not _GONE] or None  # null is still there to be managed, [] is not
    return value


def _remove_node(value: Any, fields: Node | None, schema: Schema) -> Any:
    if fields is None:
        return value
    return _GONE if is_member(fields) else _remove(value, fields, schema)


def add_named_fields(fields: FieldSet, schema: Schema) -> FieldSet:
    """Adds every named field on the way to a member as a member: so that removing `a.b` can remove `a`."""
    return FieldSet(_add_named(fields.node, schema))


def _add_named(node: Node, schema: Schema) -> Node:
    result: Node = {}
    for key, children in node.items():
        if key == ".":
            result[key] = children
            continue
        child_schema, named = inner(schema, key[2:]) if key[0] == "f" else (schema.get("items") or UNKNOWN, False)
        below = _add_named(children, child_schema)
        result[key] = {".": {}, **below} if named and below else below
    return result

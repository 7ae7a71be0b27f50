"""What differs between two versions of an object, as sets of fields: added, removed, modified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from isvc.kube.fields.fieldset import LEAF, FieldSet, Node, branch
from isvc.kube.fields.shape import UNKNOWN, elements, inner, is_atomic_map, list_keys
from isvc.kube.objects import Object
from isvc.kube.patch.merge_patch import same
from isvc.kube.schemas import Schema

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Comparison:
    added: FieldSet
    removed: FieldSet
    modified: FieldSet


def compare(old: Object, new: Object, schema: Schema) -> Comparison:
    added, removed, modified = _entries(old, new, schema)
    return Comparison(FieldSet(added), FieldSet(removed), FieldSet(modified))


def everything(value: Any, schema: Schema) -> Node:
    """Returns the node of a value that is new as a whole, or gone: it and all in it."""
    if isinstance(value, dict):
        if not value or is_atomic_map(schema):
            return LEAF
        properties: Schema = schema.get("properties") or UNKNOWN
        other: Schema = inner(schema, "")[0]
        node: Node = {".": LEAF}
        for key, entry in value.items():
            node[f"f:{key}"] = everything(entry, properties.get(key, other)) if isinstance(entry, dict | list) else LEAF
        return node
    if isinstance(value, list):
        keys = list_keys(schema) if value else None
        if keys is not None:
            return {".": LEAF, **_whole_items(value, schema, keys)}
    return LEAF


def _whole_items(items: list[Any], schema: Schema, keys: tuple[str, ...]) -> Node:
    node: Node = {}
    item_schema = schema.get("items") or UNKNOWN
    for element, item in elements(items, schema, keys):
        node[element] = LEAF if element in node else everything(item, item_schema)
    return node


_Parts = tuple[Node, Node, Node]


def _entries(old: Object, new: Object, schema: Schema) -> _Parts:
    """Returns the differences of two maps, entry by entry."""
    added: Node = {}
    removed: Node = {}
    modified: Node = {}
    for key in old.keys() | new.keys():
        before, after = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if before is not after:
            _note(f"f:{key}", before, after, inner(schema, key)[0], (added, removed, modified))
    return added, removed, modified


def _note(element: str, before: Any, after: Any, schema: Schema, parts: _Parts) -> None:
    """Puts the differences of one element's values into the three nodes."""
    added, removed, modified = parts
    if before is _ABSENT:
        added[element] = everything(after, schema)
        return
    if after is _ABSENT:
        removed[element] = everything(before, schema)
        return
    if _is_divided(before, schema) or _is_divided(after, schema):
        changed = not _alike(before, after)
        inside = _inside(before, after, schema)
    else:
        changed, inside = not same(before, after), ({}, {}, {})
    for part, children in zip(parts, inside, strict=True):
        if children:
            part[element] = children
    if changed:
        modified[element] = branch(modified.get(element, {}), member=True) if element in modified else LEAF


def _is_divided(value: Any, schema: Schema) -> bool:
    """Returns whether the value's parts count one by one; an empty one has none."""
    if isinstance(value, dict):
        return bool(value) and not is_atomic_map(schema)
    return isinstance(value, list) and bool(value) and list_keys(schema) is not None


def _alike(before: Any, after: Any) -> bool:
    """Returns whether both are of a kind, so that comparing the parts is enough; null and empty are of any kind."""
    empty: tuple[Any, ...] = (None, {}, [])
    return isinstance(before, type(after)) or before in empty or after in empty


def _inside(before: Any, after: Any, schema: Schema) -> _Parts:
    if isinstance(before, dict) or isinstance(after, dict):
        return _entries(before if isinstance(before, dict) else {}, after if isinstance(after, dict) else {}, schema)
    return _items(before if isinstance(before, list) else [], after if isinstance(after, list) else [], schema)


def _items(old: list[Any], new: list[Any], schema: Schema) -> _Parts:
    """Returns the differences of two keyed lists or sets. Duplicates of an element count as one atomic thing."""
    keys = list_keys(schema) or ()
    before, after = _by_element(old, schema, keys), _by_element(new, schema, keys)
    item_schema = schema.get("items") or UNKNOWN
    parts: _Parts = ({}, {}, {})
    added, removed, modified = parts
    for element in before.keys() | after.keys():
        mine, theirs = before.get(element, []), after.get(element, [])
        if len(mine) <= 1 and len(theirs) <= 1:
            was, now = mine[0] if mine else _ABSENT, theirs[0] if theirs else _ABSENT
            if was is not now:
                _note(element, was, now, item_schema, parts)
        elif len(mine) > 1 and len(theirs) > 1:
            if not same(mine, theirs):
                modified[element] = LEAF
        elif len(mine) > 1:
            removed[element] = LEAF
            if theirs:
                added[element] = everything(theirs[0], item_schema)
        else:
            added[element] = LEAF
            if mine:
                removed[element] = everything(mine[0], item_schema)
    return parts


def _by_element(items: list[Any], schema: Schema, keys: tuple[str, ...]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for element, item in elements(items, schema, keys):
        found.setdefault(element, []).append(item)
    return found

"""Strategic merge patch: a merge patch that knows which lists are keyed, and takes directives.

    $patch: delete | replace              in a map or an item of a keyed list
    $retainKeys: [...]                    drop what is not listed
    $setElementOrder/<list>: [...]        the order that a keyed list or a set ends up in
    $deleteFromPrimitiveList/<list>: [..] what to take out of a set

The schema says how a list merges: `x-kubernetes-patch-strategy` (merge, replace, retainKeys) and
`x-kubernetes-patch-merge-key`. Where it says nothing, maps merge and lists are replaced. In a merged list the items
of the patch come in the patch's order; items that only the original has keep their place relative to those they
stood before. Thus a patch's new items stand in front of the original's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any, Final

import orjson

from isvc.kube.objects import Object
from isvc.kube.patch import PatchError
from isvc.kube.schemas import Schema

_DIRECTIVE: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_DELETE_FROM: Final = "$deleteFromPrimitiveList/"
_SET_ORDER: Final = "$setElementOrder/"


def apply(original: Object, patch: Object, schema: Schema | None) -> Object:
    if not isinstance(patch, dict):
        raise PatchError("a strategic merge patch is a map")
    return _merge_map(original, patch, schema or {})


def _merge_map(original: Object, patch: Object, schema: Schema) -> Object:
    if _DIRECTIVE in patch:
        return _follow_directive(patch)
    result = _retain(original, patch)
    ordered = _merge_ordered_lists(result, patch, schema)
    for key, value in patch.items():
        if key == _RETAIN_KEYS or key in ordered or key.startswith(_SET_ORDER):
            continue
        if key.startswith(_DELETE_FROM):
            name = key.removeprefix(_DELETE_FROM)
            if isinstance(result.get(name), list):
                gone = _places(_items(value, key), "")
                result[name] = [item for item in result[name] if _identity(item, "") not in gone]
        elif value is None:
            result.pop(key, None)
        else:
            _set(result, key, value, schema)
    return result


def _set(result: Object, key: str, value: Any, schema: Schema) -> None:
    """Merges one field of the patch into the result."""
    old, inner = result.get(key), _field(schema, key)
    if isinstance(old, dict) and isinstance(value, dict):
        result[key] = value if _strategy(inner) == "replace" else _merge_map(old, value, inner)
    elif isinstance(old, list) and isinstance(value, list):
        result[key] = _merge_list(old, value, inner) if _strategy(inner) == "merge" else value
    elif _is_directive(value):
        result.pop(key, None)
    else:
        result[key] = _plain(value)


def _follow_directive(patch: Object) -> Object:
    match patch[_DIRECTIVE]:
        case "replace":
            return {key: value for key, value in patch.items() if key != _DIRECTIVE}
        case "delete":
            return {}
    raise PatchError(f"unknown patch type: {patch[_DIRECTIVE]} in {patch}")


def _retain(original: Object, patch: Object) -> Object:
    """Returns a copy of the original, with only the keys that `$retainKeys` lists, if the patch has it."""
    if _RETAIN_KEYS not in patch:
        return dict(original)
    kept = {key for key in _items(patch[_RETAIN_KEYS], _RETAIN_KEYS) if isinstance(key, str)}
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in kept:
            raise PatchError(f"the patch sets {key!r}, which its {_RETAIN_KEYS} does not list")
    return {key: value for key, value in original.items() if key in kept}


def _merge_ordered_lists(result: Object, patch: Object, schema: Schema) -> set[str]:
    """Merges the lists that have a `$setElementOrder`, and returns which they are."""
    done = set()
    for directive, order in patch.items():
        if not directive.startswith(_SET_ORDER):
            continue
        key = directive.removeprefix(_SET_ORDER)
        inner = _field(schema, key)
        merge_key = _merge_key(inner)
        order = _items(order, directive)
        live = _items(result.get(key) or [], key)
        changes = _items(patch.get(key) or [], key)
        _check_order(changes, order, merge_key)
        if key in result and key in patch:
            merged = _merge_list(live, changes, inner) if _strategy(inner) == "merge" else changes
        elif key in result:
            merged = live
        elif key in patch:
            merged = _plain(changes)
        else:
            continue
        result[key] = _arrange(merged, order, live, merge_key)
        done.add(key)
    return done


def _check_order(changes: list[Any], order: list[Any], merge_key: str) -> None:
    """Checks that items of the patch appear in the order list, in the same sequence."""
    if not order:
        return
    remaining = iter(order)
    for item in changes:
        if _is_directive(item):
            continue
        wanted = _identity(item, merge_key)
        if all(_identity(candidate, merge_key) != wanted for candidate in remaining):
            raise PatchError(f"The order in patch list: {changes} doesn't match {_SET_ORDER[:-1]} list: {order}")


def _merge_list(original: list[Any], patch: list[Any], schema: Schema) -> list[Any]:
    items = [*original, *patch]
    if not items:
        return []
    if len({_shape(item) for item in items}) > 1:
        raise PatchError(f"list element types are not identical: {items}")
    if isinstance(items[0], list):
        raise PatchError("lists of lists are not supported")
    if not isinstance(items[0], dict):
        return _arrange(_unique(items), patch, original, "")
    merge_key = _merge_key(schema)
    if not merge_key:
        raise PatchError("cannot merge lists without merge key")
    original, patch = _follow_directives(original, patch, merge_key)
    merged, places = list(original), _places(original, merge_key)
    for item in patch:
        place = places.get(identity := _identity(item, merge_key))
        if place is not None:
            merged[place] = _merge_map(merged[place], item, schema.get("items") or {})
            continue
        if item[merge_key] is not None:
            places[identity] = len(merged)
        merged.append(_plain(item))
    return _arrange(merged, patch, original, merge_key)


def _follow_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Returns the original without items that the patch deletes, and the patch without directives."""
    replace, gone = False, set[Hashable]()
    for item in patch:
        match item.get(_DIRECTIVE):
            case None:
                pass
            case "delete":
                gone.add(_identity(item, merge_key))
            case "replace":
                replace = True
            case other:
                raise PatchError(f"unknown patch type: {other} in {item}")
    plain = [item for item in patch if _DIRECTIVE not in item]
    if gone:
        original = [kept for kept in original if kept.get(merge_key) is None or _identity(kept, merge_key) not in gone]
    return ([_plain(item) for item in plain], []) if replace else (original, plain)


def _arrange(merged: list[Any], patch_order: list[Any], live_order: list[Any], merge_key: str) -> list[Any]:
    """Puts items of the patch in its order, the others woven in where the live list had them."""
    in_patch, in_live = _places(patch_order, merge_key), _places(live_order, merge_key)

    def place_in(places: Mapping[Hashable, int], item: Any) -> int:
        return places.get(_identity(item, merge_key), -1)

    placed = [(place_in(in_patch, item), place_in(in_live, item), item) for item in merged]
    ours = deque(sorted((each for each in placed if each[0] >= 0), key=lambda each: each[0]))
    theirs = deque(sorted((each for each in placed if each[0] < 0), key=lambda each: each[1]))
    woven: list[Any] = []
    while ours and theirs:
        woven.append((theirs if 0 <= theirs[0][1] < ours[0][1] else ours).popleft()[2])
    return woven + [item for *_, item in (*ours, *theirs)]


def _places(items: list[Any], merge_key: str) -> dict[Hashable, int]:
    """Returns where the first item of each identity stands; a list may have thousands of items."""
    places: dict[Hashable, int] = {}
    for index, item in enumerate(items):
        if not merge_key or (isinstance(item, dict) and merge_key in item):
            places.setdefault(_identity(item, merge_key), index)
    return places


def _identity(item: Any, merge_key: str) -> Hashable:
    """Returns what makes two items the same; `true` is not 1."""
    if merge_key:
        if not isinstance(item, dict) or merge_key not in item:
            raise PatchError(f"map: {item} does not contain declared merge key: {merge_key}")
        item = item[merge_key]
    is_scalar = not isinstance(item, dict | list)
    return isinstance(item, bool), item if is_scalar else orjson.dumps(item, option=orjson.OPT_SORT_KEYS)


def _unique(items: list[Any]) -> list[Any]:
    return [items[place] for place in _places(items, "").values()]


def _plain(value: Any) -> Any:
    """Returns a value of the patch that meets nothing in the original: without nulls and directives."""
    if isinstance(value, dict):
        return {
            key: _plain(inner)
            for key, inner in value.items()
            if inner is not None and not _is_directive(inner) and key != _RETAIN_KEYS and not key.startswith(_SET_ORDER)
        }
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and _DIRECTIVE in value


def _items(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise PatchError(f"{name} has to be a list")
    return value


def _shape(item: Any) -> str:
    if isinstance(item, bool):
        return "boolean"
    return "number" if isinstance(item, int | float) else type(item).__name__


def _field(schema: Schema, key: str) -> Schema:
    inner = (schema.get("properties") or {}).get(key) or schema.get("additionalProperties")
    return inner if isinstance(inner, dict) else {}


def _strategy(schema: Schema) -> str:
    words = str(schema.get("x-kubernetes-patch-strategy", "")).split(",")
    return next((word for word in words if word in ("merge", "replace")), "")


def _merge_key(schema: Schema) -> str:
    return str(schema.get("x-kubernetes-patch-merge-key", ""))

"""GJSON's modifiers: `@keys`, `@flatten` and the like, which turn what was found into something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from isvc.pods.router.gjson.documents import MISSING, NotJson, parse


def _same(value: Any, argument: str) -> Any:
    return value


def _reverse(value: Any, argument: str) -> Any:
    if isinstance(value, list):
        return value[::-1]
    return dict(reversed(value.items())) if isinstance(value, dict) else value


def _flatten(value: Any, argument: str) -> Any:
    if not isinstance(value, list):
        return value
    deep = _option(argument, "deep")
    flat: list[Any] = []
    for item in value:
        if isinstance(item, list):
            flat.extend(_flatten(item, argument) if deep else item)
        else:
            flat.append(item)
    return flat


def _join(value: Any, argument: str) -> Any:
    """Joins objects; the last of keys that come twice counts, or the first where all are preserved."""
    if not isinstance(value, list):
        return value
    objects = [item for item in value if isinstance(item, dict)]
    joined: dict[str, Any] = {}
    for item in reversed(objects) if _option(argument, "preserve") else objects:
        joined.update(item)
    return joined


def _keys(value: Any, argument: str) -> Any:
    if isinstance(value, list):
        return [None] * len(value)
    return list(value) if isinstance(value, dict) else _one(None, value)


def _values(value: Any, argument: str) -> Any:
    if isinstance(value, list):
        return value
    return list(value.values()) if isinstance(value, dict) else _one(value, value)


def _one(item: Any, value: Any) -> list[Any]:
    return [] if value is MISSING else [item]


def _to_string(value: Any, argument: str) -> Any:
    return "" if value is MISSING else json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _from_string(value: Any, argument: str) -> Any:
    if not isinstance(value, str):
        return MISSING if value is None else value
    try:
        return parse(value)
    except NotJson:
        return MISSING


def _group(value: Any, argument: str) -> Any:
    if not isinstance(value, dict):
        return MISSING
    columns = {key: items for key, items in value.items() if isinstance(items, list)}
    height = max(map(len, columns.values()), default=0)
    return [{key: items[row] for key, items in columns.items() if row < len(items)} for row in range(height)]


def _dig(value: Any, argument: str) -> Any:
    from isvc.pods.router.gjson.search import get

    found = get(value, argument)
    below = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return [*([] if found is MISSING else [found]), *(hit for item in below for hit in _dig(item, argument))]


def _option(argument: str, name: str) -> bool:
    try:
        options = parse(argument)
    except NotJson:
        return False
    return isinstance(options, dict) and options.get(name) is True


MODIFIERS: dict[str, Callable[[Any, str], Any]] = {
    "this": _same,
    "valid": _same,
    "pretty": _same,
    "ugly": _same,
    "reverse": _reverse,
    "flatten": _flatten,
    "join": _join,
    "keys": _keys,
    "values": _values,
    "tostr": _to_string,
    "fromstr": _from_string,
    "group": _group,
    "dig": _dig,
}

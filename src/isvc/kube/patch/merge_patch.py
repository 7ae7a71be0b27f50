"""JSON merge patch (RFC 7386): maps merge, null removes, all else replaces."""

from __future__ import annotations

from typing import Any


def apply(doc: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = apply(result.get(key), value)
        else:
            result[key] = value
    return result


def diff(before: Any, after: Any) -> Any:
    """Returns the patch that leads from one document to the other; `{}` where they are the same.

    A null inside a map of `after` cannot be said in a merge patch: it reads as absent.
    """
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    gone = (key for key, old in before.items() if key not in after or (after[key] is None and old is not None))
    patch: dict[str, Any] = dict.fromkeys(gone)
    for key, value in after.items():
        if value is None:
            continue
        old = before.get(key)
        if isinstance(value, dict):
            change = diff(old if isinstance(old, dict) else {}, value)
            if change or not isinstance(old, dict):
                patch[key] = change
        elif key not in before or not same(old, value):
            patch[key] = value
    return patch


def same(one: Any, other: Any) -> bool:
    """Returns whether JSON values are equal: `true` is not 1, although 1 is 1.0."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)

"""Names the fields in which two values differ, for people to read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isvc.kube.patch.merge_patch import same


def changed_fields(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Paths such as `spec.containers[server].image`; items of a list go by their name if all have one."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*before, *after)):
            yield from changed_fields(before.get(key), after.get(key), f"{path}.{key}" if path else str(key))
    elif (old := _by_name(before)) is not None and (new := _by_name(after)) is not None:
        for name in dict.fromkeys((*old, *new)):
            yield from changed_fields(old.get(name), new.get(name), f"{path}[{name}]")
    elif not same(before, after):
        yield path


def _by_name(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, list) or not all(isinstance(item, dict) and item.get("name") for item in value):
        return None
    return {str(item["name"]): item for item in value}

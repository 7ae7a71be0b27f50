"""Which item of an old list an item of the new one continues: known for keyed lists alone."""

from __future__ import annotations

from typing import Any

from isvc.kube.schemas import Schema


def counterpart(item: Any, old: Any, schema: Schema, missing: Any) -> Any:
    """The item of the old list with the same keys, or `missing` where items have no identity."""
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list) or not isinstance(item, dict):
        return missing
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    wanted = [item.get(key) for key in keys]
    for each in old:
        if isinstance(each, dict) and [each.get(key) for key in keys] == wanted:
            return each
    return missing

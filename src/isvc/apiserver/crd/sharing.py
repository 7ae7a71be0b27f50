"""Definitions in little memory: the parts of a schema that are equal become one."""

from __future__ import annotations

from typing import Any

from isvc.kube.objects import Object


def share_parts(definition: Object) -> Object:
    """Returns the definition, of which parts may be one and the same dict or list from now on: never change one."""
    shared: Object = _share(definition, {})
    return shared


def _share(value: Any, known: dict[Any, Any]) -> Any:
    """Returns the first value that was equal to this one; parts are known by the identity of what they hold."""
    if isinstance(value, dict):
        for key, each in value.items():
            value[key] = _share(each, known)
        return known.setdefault((*value, *map(id, value.values())), value)
    if isinstance(value, list):
        value[:] = [_share(each, known) for each in value]
        return known.setdefault((None, *map(id, value)), value)
    return known.setdefault((type(value), value), value)

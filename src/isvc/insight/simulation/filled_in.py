"""Values that an API server keeps when an object is replaced by one that does not say them."""

from __future__ import annotations

from typing import Any

from isvc.engine.comparison import ALLOTTED
from isvc.engine.custom_defaults import Known, known_defaults
from isvc.engine.drift import is_filled_in
from isvc.engine.paths import at, put
from isvc.kube.objects import Object
from isvc.kube.resource import Resource


def with_allotted(new: Object, live: Object, resource: Resource) -> Object:
    """Returns a built-in object with the addresses that the cluster allotted to the live one; changed in place."""
    for path in ALLOTTED.get((resource.group, resource.kind), ()):
        if at(new, path) is None and (value := at(live, path)) is not None:
            put(new, path, value)
    return new


def with_known_defaults(new: Object, live: Object, resource: Resource) -> Object:
    """Returns another project's object with the defaults that the live one has."""
    known = known_defaults(resource)
    return {
        key: value if key == "metadata" else _fill(value, live.get(key), known.at(key), key)
        for key, value in new.items()
    }


def _fill(new: Any, live: Any, known: Known, field: str) -> Any:
    if isinstance(new, dict) and isinstance(live, dict):
        said = {key: _fill(value, live.get(key), known.at(key), key) for key, value in new.items()}
        rest = ((key, value) for key, value in live.items() if key not in new)
        return said | {key: value for key, value in rest if is_filled_in(value, known.at(key), False, key, field)}
    if isinstance(new, list) and isinstance(live, list) and len(new) == len(live):
        return [_fill(one, other, known.at("[]"), field) for one, other in zip(new, live, strict=True)]
    return new

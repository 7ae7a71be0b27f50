"""Whether a live object already says what is wanted of it, and which fields differ if it does not.

An API server fills in defaults, drops empty values and rewrites quantities. `covers` sees through all three, so that
only a difference that somebody meant is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from isvc.kube.patch.merge_patch import same
from isvc.kube.quantity import Quantity, QuantityError

# Fields that Kubernetes holds as quantities: `1000m` comes back as `1`.
_QUANTITIES: Final = frozenset({"averageValue", "divisor", "maxUnavailableSize", "sizeLimit"})
_MAPS_OF_QUANTITIES: Final = frozenset({"capacity", "hard", "limits", "max", "min", "overhead", "requests"})
# Plain text, whatever its keys are called.
_MAPS_OF_TEXT: Final = frozenset({"annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector"})
# False, 0 or "" in these say something else than leaving them out; elsewhere an API server may drop the value.
ZERO_MATTERS: Final = frozenset(
    {"allowPrivilegeEscalation", "automountServiceAccountToken", "enableServiceLinks", "fsGroup", "hostUsers"}
    | {"maxReplicas", "minReplicaCount", "minReplicas", "optional", "privileged", "readOnlyRootFilesystem", "replicas"}
    | {"runAsGroup", "runAsNonRoot", "runAsUser", "storageClassName", "suspend", "tolerationSeconds", "weight"}
)


def covers(live: Any, desired: Any, field: str = "", parent: str = "") -> bool:
    """Returns whether `live` has everything `desired` has: maps as subsets, lists in full and in order."""
    if isinstance(desired, dict):
        if live is None:
            return all(covers(None, value, key, field) for key, value in desired.items())
        if not isinstance(live, dict):
            return False
        return all(covers(live.get(key), value, key, field) for key, value in desired.items())
    if isinstance(desired, list):
        if live is None:
            return not desired
        if not isinstance(live, list) or len(live) != len(desired):
            return False
        return all(covers(have, want, field, parent) for have, want in zip(live, desired, strict=True))
    if live is None:
        return desired is None or (not desired and field not in ZERO_MATTERS and parent not in _MAPS_OF_TEXT)
    return same_scalar(live, desired, field, parent)


def same_scalar(live: Any, desired: Any, field: str = "", parent: str = "") -> bool:
    if isinstance(live, bool) or isinstance(desired, bool):
        return live is desired
    if live == desired:
        return True
    if isinstance(live, dict | list) or desired is None or parent in _MAPS_OF_TEXT:
        return False
    if field in _QUANTITIES or parent in _MAPS_OF_QUANTITIES or (field == "value" and parent == "target"):
        return _same_quantity(live, desired)
    return False


def equivalent(one: Any, other: Any) -> bool:
    """Returns whether two statuses say the same: equal, but for entries that are null or empty, which say nothing.

    Mostly they are the same to the letter, which is seen at a fraction of the cost.
    """
    return _text(one) == _text(other) or _says_the_same(one, other)


def _text(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _says_the_same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict | None):
        other = other or {}
        keys = {*one, *other}
        return all(_says_the_same(one.get(key), other.get(key)) for key in keys)
    if isinstance(one, list) and isinstance(other, list | None):
        other = other or []
        return len(one) == len(other) and all(map(_says_the_same, one, other))
    return _says_the_same(other, one) if one is None and other is not None else same(one, other)


def _same_quantity(one: Any, other: Any) -> bool:
    try:
        return Quantity.parse(one) == Quantity.parse(other)
    except QuantityError:
        return False


def changed_fields(before: Any, after: Any, path: str = "") -> Iterator[str]:
    """Yields paths such as `spec.containers[server].image`; items of a list go by their name if all have one."""
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

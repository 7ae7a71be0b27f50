"""Whether a live value is still what its manifest made of it.

An API server fills in defaults, so a live object has more than its manifest. What it has more is drift unless it is
such a default: that is how a field is noticed that was taken out of the manifest, or put in by hand.

For a built-in kind the manifest is completed first (`kube.builtin`), so that nothing more is expected: `exact`. For the
kinds of others the `known` defaults are allowed, and empty values everywhere.
"""

from __future__ import annotations

from typing import Any, Final

from isvc.engine.custom_defaults import NOTHING, Known
from isvc.kube.equality import ZERO_MATTERS, same_scalar

# Maps whose keys are data: nothing is ever filled in.
_FREE: Final = frozenset(
    {"annotations", "data", "labels", "limits", "matchLabels", "nodeSelector", "requests", "selector"}
)


def drifted(
    live: Any, desired: Any, known: Known = NOTHING, *, exact: bool = False, field: str = "", parent: str = ""
) -> bool:
    """Returns whether the live value is something else than what the API server makes of the desired one."""
    if isinstance(desired, dict):
        if live is not None and not isinstance(live, dict):
            return True
        have = live or {}
        return any(
            drifted(have.get(key), value, known.at(key), exact=exact, field=key, parent=field)
            for key, value in desired.items()
        ) or any(
            key not in desired and not is_filled_in(value, known.at(key), exact, key, field)
            for key, value in have.items()
        )
    if isinstance(desired, list):
        items = live or []
        if not isinstance(items, list) or len(items) != len(desired):
            return bool(desired) or not is_filled_in(live, known, exact, field, parent)
        return any(
            drifted(one, other, known.at("[]"), exact=exact, field=field, parent=parent)
            for one, other in zip(items, desired, strict=True)
        )
    if live is None:
        return bool(desired) or (desired is not None and (parent in _FREE or field in ZERO_MATTERS))
    if desired is None:
        return not is_filled_in(live, known, exact, field, parent)
    return not same_scalar(live, desired, field, parent)


def is_filled_in(value: Any, known: Known, exact: bool, field: str, parent: str) -> bool:
    """Returns whether the API server, or a webhook that is known, could have set this by itself."""
    if value in (None, {}, []):
        return True
    if value == known.value and type(value) is type(known.value):
        return True
    if not value:
        return not exact and parent not in _FREE and field not in ZERO_MATTERS
    return isinstance(value, dict) and all(
        is_filled_in(inner, known.at(key), exact, key, field) for key, inner in value.items()
    )

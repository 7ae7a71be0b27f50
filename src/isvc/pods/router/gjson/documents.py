"""JSON documents as decoded values, read as strictly as Go reads them."""

from __future__ import annotations

import json
from typing import Any, Final

MISSING: Final = object()


class NotJson(ValueError):
    """The text is no JSON document."""


def parse(text: bytes | str) -> Any:
    """Parses JSON; the first of a key that is there twice counts, as it does for GJSON."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    try:
        return json.loads(text, object_pairs_hook=_first_of_each, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None


def is_json(text: bytes) -> bool:
    try:
        parse(text)
    except NotJson:
        return False
    return True


def _first_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs)) if len({key for key, _ in pairs}) < len(pairs) else dict(pairs)


def _refuse(constant: str) -> Any:
    raise NotJson(f"{constant} is no JSON value")

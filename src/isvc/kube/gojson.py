"""JSON as Go's encoding/json writes it.

A few strings that Kubernetes controllers leave in arguments, variables and annotations are JSON documents that other
programs compare letter by letter. Go writes them compactly and escapes `<`, `>`, `&` and two line separators; the
order of keys is the caller's: that of the struct's fields, or sorted for a map (see `sorted_map`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def dumps(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def sorted_map(value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a Go map: its keys in order of their bytes."""
    return {key: value[key] for key in sorted(value, key=lambda text: text.encode())}

"""Objects and their changes as people read them."""

from __future__ import annotations

import difflib
from typing import Any

import yaml


def as_yaml(value: Any) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


def difference(before: Any, after: Any, name_before: str, name_after: str) -> str:
    """Returns the unified diff of two values as YAML."""
    lines = difflib.unified_diff(
        as_yaml(before).splitlines(keepends=True), as_yaml(after).splitlines(keepends=True), name_before, name_after
    )
    return "".join(lines)

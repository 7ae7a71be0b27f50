"""Objects and their changes as people read them."""

from __future__ import annotations

import difflib
from typing import Any

from isvc.kube.go_yaml import dump


def difference(before: Any, after: Any, name_before: str, name_after: str) -> str:
    """Returns the unified diff of two values as YAML."""
    lines = difflib.unified_diff(
        dump(before).splitlines(keepends=True), dump(after).splitlines(keepends=True), name_before, name_after
    )
    return "".join(lines)

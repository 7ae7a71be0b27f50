"""Patterns in schemas and CEL are RE2's, as in Go: the time they take grows with the text alone.

With Python's own engine, one value that `^(a+)+$` does not match would keep the server busy for years.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

_QUIET = re2.Options()
_QUIET.log_errors = False


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text; one that is no pattern is found nowhere."""
    try:
        return bool(_compiled(pattern).Match(text))
    except re2.error:
        return False


def problem_with(pattern: str) -> str:
    """Why the pattern does not compile, or nothing."""
    try:
        re2.compile(pattern, _QUIET)
    except re2.error as error:
        return str(error.args[0], "utf-8")
    return ""


def find_all(pattern: str, text: str) -> list[str]:
    """What the pattern matches, from left to right; raises ValueError for one that is none."""
    try:
        return [found[0] for found in re2.finditer(pattern, text, _QUIET)]
    except re2.error:
        raise ValueError(f"error parsing regexp: {problem_with(pattern)}") from None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    """As a set of one, which answers whether and not where, in a seventh of the time."""
    compiled = re2.Set.SearchSet(_QUIET)
    compiled.Add(pattern)
    compiled.Compile()
    return compiled

"""Regular expressions of users: in schemas and CEL, routes, storage containers. They are RE2's, as in Go and Envoy.

The time that RE2 takes grows with the text alone. With Python's own engine, one value that `^(a+)+$` does not match
would keep the program busy for years.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import re2

_QUIET = re2.Options()
_QUIET.log_errors = False


class BadPattern(ValueError):
    """It is no regular expression; says which, and why."""


def check(pattern: str) -> None:
    """Raises BadPattern for what is no regular expression."""
    if problem := problem_with(pattern):
        raise BadPattern(f'"{pattern}": {problem}')


def check_replacement(pattern: str, new: str) -> None:
    r"""Raises BadPattern where `new` cannot replace what the pattern finds; `\1` in it is the first group."""
    check(pattern)
    groups = re2.compile(pattern.encode(), _QUIET).groups
    if any(int(group) > groups for group in re.findall(r"\\(\d)", new)):
        raise BadPattern(f'"{new}" names a group that "{pattern}" does not have')


def matches(pattern: str, text: str) -> bool:
    """Returns whether the pattern is found in the text; one that is no pattern is found nowhere."""
    try:
        return bool(_compile(pattern).Match(text))
    except re2.error:
        return False


def problem_with(pattern: str) -> str:
    """Says why the pattern does not compile, or nothing."""
    try:
        re2.compile(pattern, _QUIET)
    except re2.error as error:
        return str(error.args[0], "utf-8")
    return ""


def find_all(pattern: str, text: str) -> list[str]:
    """Returns what the pattern matches, from left to right; raises ValueError for one that is none."""
    try:
        return [found[0] for found in re2.finditer(pattern, text, _QUIET)]
    except re2.error:
        raise ValueError(f"error parsing regexp: {problem_with(pattern)}") from None


@lru_cache(maxsize=1024)
def _compile(pattern: str) -> Any:
    """Compiles a set of one, which answers whether and not where, in a seventh of the time."""
    compiled = re2.Set.SearchSet(_QUIET)
    compiled.Add(pattern)
    compiled.Compile()
    return compiled

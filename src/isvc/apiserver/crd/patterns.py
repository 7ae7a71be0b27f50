"""Patterns in schemas are RE2's, as in Go.

Python's own engine serves those that mean the same in both, which is nearly all and quick; the CEL runtime, which
brings RE2, serves the rest and is only then loaded.
"""

from __future__ import annotations

import re
from functools import lru_cache

from isvc.apiserver.cel import CelError, compile_expression

#: Syntax that only one of the two reads, or reads differently: POSIX and Unicode classes, flags in the middle, `\z`,
#: named groups, and what RE2 leaves out, looking around and back.
_FOREIGN = re.compile(r"\[\[?:|\\[pPzCQ1-9]|.\(\?[a-zA-Z]+\)|\(\?[a-zA-Z]*U|\(\?P?[<=!]")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]])*\]|\$", re.DOTALL)


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text; one that is no pattern is found nowhere."""
    compiled = _compiled(pattern)
    if compiled is not None:
        return compiled.search(text) is not None
    try:
        return _by_re2(pattern, text)
    except CelError:
        return False


def problem_with(pattern: str) -> str:
    """Why the pattern does not compile, or nothing."""
    try:
        if _compiled(pattern) is None:
            _by_re2(pattern, "")
    except CelError as error:
        return str(error)
    return ""


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    if _FOREIGN.search(pattern):
        return None
    try:
        return re.compile(_TOKEN.sub(_strict_end, pattern), re.ASCII)
    except re.error:
        return None


def _strict_end(token: re.Match[str]) -> str:
    """Go's `$` is the very end; Python's may be before a last newline. In a class or escaped it is a letter."""
    return r"\Z" if token[0] == "$" else token[0]


def _by_re2(pattern: str, text: str) -> bool:
    return bool(compile_expression("self.matches(oldSelf)").evaluate({"self": text, "oldSelf": pattern}))

"""Whether a value fits: wildcards of names, and the comparisons of queries."""

from __future__ import annotations

import math
import operator
import re
from typing import Any

from isvc.pods.router.gjson.documents import MISSING
from isvc.pods.router.gjson.paths import Query

_ORDER = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)", re.IGNORECASE)
_TRUE, _FALSE = {"1", "t", "true"}, {"0", "f", "false"}


def holds(query: Query, value: Any) -> bool:
    wanted = query.value
    if wanted.startswith("~"):
        value, wanted = _as_boolean(value, wanted[1:]), "true"
    if value is MISSING:
        return False
    if not query.operator:
        return True
    if isinstance(value, bool):
        return _compare_booleans(query.operator, value, wanted)
    if isinstance(value, int | float):
        compare = _ORDER.get(query.operator)
        return compare is not None and bool(compare(_as_float(value), _number(wanted)))
    if isinstance(value, str):
        return _compare_strings(query.operator, value, wanted)
    return False


def fits(text: str, pattern: str) -> bool:
    """`*` stands for any characters and `?` for one; a backslash takes the next character literally.

    Only the last `*` is ever tried again, so that no pattern takes longer than text times pattern.
    """
    tokens = re.findall(r"\\.|[^\\]", pattern, re.DOTALL)
    at, token, star, resume = 0, 0, -1, 0
    while at < len(text):
        if token < len(tokens) and tokens[token] == "*":
            star, resume = token, at
            token += 1
        elif token < len(tokens) and (tokens[token] == "?" or tokens[token][-1] == text[at]):
            at, token = at + 1, token + 1
        elif star >= 0:
            resume += 1
            at, token = resume, star + 1
        else:
            return False
    return all(rest == "*" for rest in tokens[token:])


def _compare_strings(sign: str, value: str, wanted: str) -> bool:
    if sign in ("%", "!%"):
        return fits(value, wanted) == (sign == "%")
    compare = _ORDER.get(sign)
    return compare is not None and bool(compare(value, wanted))


def _compare_booleans(sign: str, value: bool, wanted: str) -> bool:
    """Text is compared: `true` is above `false`, and any other word equals neither."""
    this, other = ("true", "false") if value else ("false", "true")
    if sign == "=":
        return wanted == this
    if sign == "!=":
        return wanted != this
    if sign == (">" if value else "<"):
        return wanted == other
    return sign == (">=" if value else "<=")


def _as_boolean(value: Any, like: str) -> Any:
    if like == "*":
        return value is not MISSING
    if like == "null":
        return value is None or value is MISSING
    if like in ("true", "false"):
        return _is_like(value, like == "true")
    return MISSING


def _is_like(value: Any, wanted: bool) -> bool:
    if value is None or value is MISSING:
        return not wanted
    if isinstance(value, bool):
        return value is wanted
    if isinstance(value, int | float):
        return (value != 0) is wanted
    return isinstance(value, str) and value.lower() in (_TRUE if wanted else _FALSE)


def _as_float(value: float) -> float:
    """Returns what Go reads of a number: one that is too large is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _number(text: str) -> float:
    return float(text) if _NUMBER.fullmatch(text) else 0.0

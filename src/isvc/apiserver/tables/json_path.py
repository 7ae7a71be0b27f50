"""JSON paths as printer columns use them: `.spec.items[?(@.name=="a")].size`.

Steps are fields (`.a`, `['a']`), indexes and slices (`[0]`, `[-1:]`), all of them (`[*]`), several fields at once
(`['a','b']`), filters (`[?(@.a>1)]`, `[?(@.a)]`) and everything below (`..a`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import orjson

Find: TypeAlias = Callable[[Any], list[Any]]

_STEP = re.compile(
    r"""(?P<below>\.)?\.(?P<key>\*|(?:\\.|[^.\[\]\\])+)
      | \[(?P<index>-?\d+|\*)\]
      | \[(?P<slice>-?\d*:-?\d*(?::\d+)?)\]
      | \[(?P<quoted>'[^']*'(?:\s*,\s*'[^']*')*)\]
      | \[\?\((?P<test>.*?)\)\]
      | (?P<itself>\.$)""",
    re.VERBOSE,
)
_TEST = re.compile(r"""@(?P<path>[^=!<>]*?)\s*(?:(?P<sign>==|!=|<=|>=|<|>)\s*(?P<value>"[^"]*"|'[^']*'|[^\s"']+))?""")
_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


@lru_cache(maxsize=1024)
def json_path(path: str) -> Find:
    """Returns a function from a value to everything that the path finds in it; raises ValueError if it is no path."""
    steps, at = [], 0
    while at < len(path):
        found = _STEP.match(path, at)
        if not found:
            raise ValueError(f"{path!r} is no JSON path: {path[at:]!r} is not understood")
        steps.append(_step(found))
        at = found.end()

    def find(value: Any) -> list[Any]:
        values = [value]
        for step in steps:
            values = [each for one in values for each in step(one)]
        return values

    return find


def _step(found: re.Match[str]) -> Find:
    if found["key"]:
        key = re.sub(r"\\(.)", r"\1", found["key"])
        step = _every if key == "*" else lambda value: _fields(value, [key])
        return (lambda value: [each for inner in _below(value) for each in step(inner)]) if found["below"] else step
    if found["quoted"]:
        keys = [re.sub(r"\\(.)", r"\1", each) for each in re.findall(r"'([^']*)'", found["quoted"])]
        return lambda value: _fields(value, keys)
    if found["index"]:
        return _every if found["index"] == "*" else _slice(found["index"])
    if found["slice"]:
        return _slice(found["slice"])
    return _filter(found["test"]) if found["test"] else lambda value: [value]


def _fields(value: Any, keys: list[str]) -> list[Any]:
    return [value[key] for key in keys if key in value] if isinstance(value, dict) else []


def _every(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []


def _below(value: Any) -> list[Any]:
    return [value, *(inner for each in _every(value) for inner in _below(each))]


def _slice(text: str) -> Find:
    bounds = [int(each) if each else None for each in text.split(":")]
    if len(bounds) == 1:
        bounds.append(None if bounds[0] == -1 else (bounds[0] or 0) + 1)
    return lambda value: value[slice(*bounds)] if isinstance(value, list) else []


def _filter(text: str) -> Find:
    test = _TEST.fullmatch(text.strip())
    if not test:
        raise ValueError(f"{text!r} is no filter of a JSON path")
    find = json_path(test["path"])
    if not test["sign"]:
        return lambda value: [each for each in _every(value) if find(each)]
    compare, wanted = _SIGNS[test["sign"]], _literal(test["value"])

    def passes(found: list[Any]) -> bool:
        try:
            return bool(found) and compare(found[0], wanted)
        except TypeError:
            return False

    return lambda value: [each for each in _every(value) if passes(find(each))]


def _literal(text: str) -> Any:
    if text[0] in "\"'":
        return text[1:-1]
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text

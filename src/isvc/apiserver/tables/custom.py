"""Printer columns of a CustomResourceDefinition: JSON paths of the plain sort that CRDs may use."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import orjson

from isvc.apiserver.tables.columns import AGE, NAME, Column, since
from isvc.kube.objects import Object

_STEP = re.compile(
    r"""\.(?P<key>(?:\\.|[^.\[\]\\])+)|\[(?P<index>-?\d+|\*)\]|\['(?P<quoted>[^']*)'\]|\[\?\((?P<test>.*?)\)\]"""
)
_TEST = re.compile(r"""@\.(?P<path>[\w.\-/]+)\s*(?P<op>==|!=)\s*(?P<value>"[^"]*"|'[^']*'|[\w.\-]+)""")


def columns(printed: Sequence[Object]) -> list[Column]:
    if not printed:
        return [NAME, AGE_OF_CREATION]
    return [NAME, *(_column(each) for each in printed)]


_CREATED = "CreationTimestamp is a timestamp representing the server time when this object was created."
AGE_OF_CREATION = Column("Age", AGE.cell, "date", description=_CREATED)


def _column(printed: Object) -> Column:
    find = json_path(printed["jsonPath"])
    kind = printed.get("type", "string")

    def cell(obj: Object) -> Any:
        return present(find(obj), kind)

    return Column(
        printed["name"],
        cell,
        kind,
        printed.get("priority", 0),
        printed.get("format", ""),
        printed.get("description") or f"Custom resource definition column (in JSONPath format): {printed['jsonPath']}",
    )


def present(found: list[Any], kind: str) -> Any:
    """The cell for what a path found, by the column's type; empty cells are null."""
    if not found or found[0] is None:
        return None
    value = found[0]
    match kind:
        case "date":
            return since(value) if isinstance(value, str) else None
        case "integer":
            return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        case "number":
            return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
    return ",".join(_text(each) for each in found) if len(found) > 1 else _text(value)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return orjson.dumps(value).decode()


@lru_cache(maxsize=1024)
def json_path(path: str) -> Callable[[Any], list[Any]]:
    """A function from a value to everything that the path finds in it."""
    steps = [match.groupdict() for match in _STEP.finditer(path if path.startswith((".", "[")) else f".{path}")]

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [each for one in found for each in _follow(one, step)]
        return found

    return find


def _follow(value: Any, step: dict[str, str | None]) -> list[Any]:
    if (key := step["key"] or step["quoted"]) is not None:
        key = re.sub(r"\\(.)", r"\1", key)
        return [value[key]] if isinstance(value, dict) and key in value else []
    if (index := step["index"]) is not None:
        if index == "*":
            return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else []
        at = int(index)
        return [value[at]] if isinstance(value, list) and -len(value) <= at < len(value) else []
    test = _TEST.fullmatch(step["test"] or "")
    if not test or not isinstance(value, list):
        return []
    wanted = test["value"].strip("\"'")
    inner = json_path(f".{test['path']}")
    return [each for each in value if (wanted in map(str, inner(each))) is (test["op"] == "==")]

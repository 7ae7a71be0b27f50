"""Following a path through a document."""

from __future__ import annotations

import json
from typing import Any

from isvc.pods.router.gjson import paths
from isvc.pods.router.gjson.documents import MISSING, NotJson, parse
from isvc.pods.router.gjson.matching import fits, holds
from isvc.pods.router.gjson.modifiers import MODIFIERS

_LITERALS = {"true": True, "false": False, "null": None, "nan": float("nan"), "inf": float("inf")}


def exists(document: Any, path: str) -> bool:
    return get(document, path) is not MISSING


def get(value: Any, path: str) -> Any:
    """Returns what a path leads to, or MISSING."""
    if len(path) > 1:
        for start in (_modify, _literal, _select):
            begun = start(value, path)
            if begun is not None:
                found, rest = begun
                return get(found, rest[1:]) if rest[:1] in ("|", ".") else found
    search = _Search()
    if path.startswith(".."):  # a document is one line of JSON lines
        search.array([value], path[2:])
    else:
        search.into(value, path)
    return search.found if search.pipe is None else get(search.found, search.pipe)


class _Search:
    """One walk along the dots of a path, up to its first pipe.

    What was found stands even where the walk goes on: `#(…)#` collects and lets another member win.
    """

    def __init__(self) -> None:
        self.found: Any = MISSING
        self.pipe: str | None = None

    def into(self, value: Any, path: str) -> bool:
        if isinstance(value, dict):
            return self.object(value, path)
        return isinstance(value, list) and self.array(value, path)

    def object(self, value: dict[str, Any], path: str) -> bool:
        part = paths.member(path)
        self.pipe = part.pipe if part.pipe is not None else self.pipe
        for key, item in value.items():
            if fits(key, part.name) if part.has_wildcard else key == part.name:
                if part.rest is None:
                    self.found = item
                    return True
                if self.into(item, part.rest):
                    return True
        return False

    def array(self, value: list[Any], path: str) -> bool:
        part = paths.element(path)
        self.pipe = part.pipe if part.pipe is not None else self.pipe
        if part.query:
            return self._query(value, part.query, part.rest)
        if part.name == "#":
            self.found = len(value) if part.rest is None else self._each(value, part.rest)
            return True
        if not (part.name.isascii() and part.name.isdigit() and int(part.name) < len(value)):
            return False
        item = value[int(part.name)]
        if part.rest is not None:
            return self.into(item, part.rest)
        self.found = item
        return True

    def _each(self, value: list[Any], rest: str) -> list[Any]:
        path = self._up_to_pipe(rest)
        return [found for item in value if (found := get(item, path)) is not MISSING]

    def _query(self, value: list[Any], query: paths.Query, rest: str | None) -> bool:
        chosen: list[Any] = []
        for item in value:
            if not _answers(item, query):
                continue
            found = item if rest is None else get(item, self._up_to_pipe(rest))
            if not query.all:
                self.found = found
                return True
            if found is not MISSING:
                chosen.append(found)
        if query.all and self.found is MISSING:
            self.found = chosen
        return False

    def _up_to_pipe(self, rest: str) -> str:
        path, pipe = paths.split_at_pipe(rest)
        self.pipe = pipe if pipe is not None else self.pipe
        return path


def _answers(item: Any, query: paths.Query) -> bool:
    if isinstance(item, dict | list):
        return holds(query, get(item, query.path))
    return not query.path and holds(query, item)


def _modify(value: Any, path: str) -> tuple[Any, str] | None:
    if path[0] != "@":
        return None
    end = next((index for index, char in enumerate(path) if char in ":|."), len(path))
    modifier = MODIFIERS.get(path[1:end])
    if modifier is None:
        return None
    argument, rest = "", path[end:]
    if rest.startswith(":"):
        argument, rest = _argument(rest[1:])
    return modifier(value, argument), rest


def _argument(text: str) -> tuple[str, str]:
    """Returns a JSON value, or what stands before the next pipe."""
    if text[:1] in ("{", "[", '"'):
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            pass
        else:
            return text[:end], text[end:]
    path, pipe = paths.split_at_pipe(text)
    return path, "" if pipe is None else f"|{pipe}"


def _literal(value: Any, path: str) -> tuple[Any, str] | None:
    """`!` and a JSON value stand for that value, whatever the document."""
    if path[0] != "!":
        return None
    if path[1] in '{["+-0123456789':
        end = paths.closing(path[1:]) if path[1] in "{[" else None
        text, rest = (path[1:], "") if end is None else (path[1 : end + 2], path[end + 2 :])
        try:
            return parse(text), rest
        except NotJson:
            return MISSING, rest
    name = path[1:].split("|")[0].split(".")[0]
    return (_LITERALS[name.lower()], path[1 + len(name) :]) if name.lower() in _LITERALS else None


def _select(value: Any, path: str) -> tuple[Any, str] | None:
    """Returns what a multipath selects: an array or an object of what several paths lead to."""
    split = paths.selectors(path) if path[0] in "[{" else None
    if split is None or (split[1] and split[1][0] not in "|."):
        return None
    named = [(name, sub, found) for name, sub in split[0] if (found := get(value, sub)) is not MISSING]
    if path[0] == "[":
        return [found for _, _, found in named], split[1]
    return {_name(name, sub): found for name, sub, found in named}, split[1]


def _name(name: str, path: str) -> str:
    if name.startswith('"'):
        try:
            return str(parse(name))
        except NotJson:
            return name
    last = path.replace("|", ".").split(".")[-1]
    return name or ("_" if set("[]{}()#|!") & set(last) else last)

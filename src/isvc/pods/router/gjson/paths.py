"""How a GJSON path falls into parts: what names a member here, and what is left for behind it.

`.` leads into the member that was found; `|` hands whatever was found, an array too, to the rest of the path.
"""

from __future__ import annotations

from dataclasses import dataclass

from isvc.pods.router.gjson.modifiers import MODIFIERS


@dataclass(frozen=True, slots=True)
class Part:
    """One step of a path: `rest` leads into what it finds, `pipe` takes it whole; one of them at most is there."""

    name: str
    rest: str | None = None
    pipe: str | None = None
    has_wildcard: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """`#(path op value)`: elements of an array for which it holds; all of them with a second `#` behind it."""

    path: str = ""
    operator: str = ""
    value: str = ""
    all: bool = False


@dataclass(frozen=True, slots=True)
class ArrayPart:
    name: str
    rest: str | None = None
    pipe: str | None = None
    query: Query | None = None


def member(path: str) -> Part:
    """Returns the first part of a path that is followed into an object; a backslash takes a character literally."""
    name, wildcard, index = "", False, 0
    escaped = False
    while index < len(path):
        char = path[index]
        if char == "\\":
            escaped = True
            name += path[index + 1 : index + 2]
            index += 2
            continue
        if char == "|":
            return Part(name, pipe=path[index + 1 :], has_wildcard=wildcard)
        if char == ".":
            behind = path[index + 1 :]
            if starts_a_new_path(behind):
                return Part(name, pipe=behind, has_wildcard=wildcard)
            return Part(name, rest=behind, has_wildcard=wildcard)
        wildcard = wildcard or char in "*?"
        name += char
        index += 1
    return Part(name if escaped else path, has_wildcard=wildcard)


def element(path: str) -> ArrayPart:
    """Returns the first part of a path that is followed into an array."""
    query: Query | None = None
    counts, index = False, 0
    while index < len(path):
        char = path[index]
        if char == "|":
            return ArrayPart(path[:index], pipe=path[index + 1 :], query=query)
        if char == ".":
            behind = path[index + 1 :]
            if not counts and starts_a_new_path(behind):
                return ArrayPart(path[:index], pipe=behind, query=query)
            return ArrayPart(path[:index], rest=behind, query=query)
        if char == "#":
            counts = True
            if index == 0 and path[1:2] in ("(", "["):
                query, end = _query(path)
                if end is None:
                    return ArrayPart(path, query=query)
                index = end - 1
        index += 1
    return ArrayPart(path, query=query)


def starts_a_new_path(path: str) -> bool:
    """A modifier or a multipath behind a dot works on all that was found, as if behind a pipe."""
    if path.startswith("@"):
        end = next((index for index, char in enumerate(path) if char in ".|:"), len(path))
        return path[1:end] in MODIFIERS
    return path[:1] in ("[", "{")


def split_at_pipe(path: str) -> tuple[str, str | None]:
    """Returns a path and what follows its first `|` outside of queries."""
    if path.startswith("{"):
        end = closing(path)
        if end is not None and path[end + 1 : end + 2] == "|":
            return path[: end + 1], path[end + 2 :]
        return path, None
    index = 0
    while index < len(path):
        if path[index] == "\\":
            index += 1
        elif path[index] == "|":
            return path[:index], path[index + 1 :]
        elif path[index : index + 2] == ".#" and path[index + 2 : index + 3] in ("(", "["):
            end = closing(path[index + 2 :])
            index = len(path) if end is None else index + 2 + end
        index += 1
    return path, None


def selectors(path: str) -> tuple[list[tuple[str, str]], str] | None:
    """Returns the named paths of a multipath `[a,b]` or `{"x":a}`, and what follows it; None where it does not end."""
    found: list[tuple[str, str]] = []
    end = closing(path)
    if end is None:
        return None
    start, colon, in_modifier = 1, 0, False
    for index, depth in _outside_of_strings(path[: end + 1]):
        char = path[index]
        if char == "@" and path[index - 1] in ".|":
            in_modifier = True
        elif char == ":" and not in_modifier and not colon and depth == 1:
            colon = index
        elif index == end or (char == "," and depth == 1):
            found.append((path[start:colon], path[colon + 1 : index]) if colon else ("", path[start:index]))
            start, colon, in_modifier = index + 1, 0, False
    return found, path[end + 1 :]


def closing(path: str) -> int | None:
    """Returns where the bracket that a path starts with is closed."""
    for index, depth in _outside_of_strings(path):
        if path[index] in "])}" and depth == 0:
            return index
    return None


def _outside_of_strings(path: str) -> list[tuple[int, int]]:
    """Returns the characters that are neither escaped nor quoted, each with the depth of brackets behind it."""
    found: list[tuple[int, int]] = []
    depth, index, quoted = 0, 0, False
    while index < len(path):
        char = path[index]
        if char == "\\":
            index += 2
            continue
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char in "[({") - (char in "])}")
            found.append((index, depth))
        index += 1
    return found


def _query(path: str) -> tuple[Query, int | None]:
    """Returns a query and where it ends; one that does not end looks for anything."""
    end, operator = None, 0
    for index, depth in _outside_of_strings(path[1:]):
        if depth == 0:
            end = index + 1
            break
        if depth == 1 and not operator and path[index + 1] in "!=<>%":
            operator = index + 1
    if end is None:
        return Query(), None
    selects_all = path[end + 1 : end + 2] == "#"
    if not operator:
        return Query(path[2:end].strip(), all=selects_all), end + 1
    sign, value = _comparison(path[operator:end].strip())
    return Query(path[2:operator].strip(), sign, value, selects_all), end + 1


def _comparison(text: str) -> tuple[str, str]:
    sign = next((sign for sign in ("==", "!=", "!%", "<=", ">=", "<", ">", "=", "%") if text.startswith(sign)), "")
    if not sign and text == "!":
        sign = "!"
    value = text[len(sign) :].strip()
    if len(value) >= 2 and value[0] == value[-1] == '"':
        value = _unquote(value)
    return sign.replace("==", "="), value


def _unquote(text: str) -> str:
    from isvc.pods.router.gjson.documents import NotJson, parse

    try:
        return str(parse(text))
    except NotJson:
        return text[1:-1]

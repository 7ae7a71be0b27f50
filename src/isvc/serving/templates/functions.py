"""The functions that every template has: comparisons, `index`, `len`, `printf` and their like."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote_plus

from isvc.serving.templates.printing import plain, sprint, sprintf, to_text
from isvc.serving.templates.values import (
    ANY,
    BASIC,
    BOOL,
    INT,
    REFLECTED,
    STRING,
    UINT8,
    Maybe,
    Type,
    Value,
    element,
    indirect,
    is_true,
)


class Function(NamedTuple):
    """What a template can call. The types of its parameters decide what it takes; `more` is that of any others."""

    call: Callable[..., Maybe]
    parameters: tuple[Type, ...]
    more: Type | None = None


class Html(str):
    """Text that is escaped already."""

    __slots__ = ()


class Unfit(ValueError):
    """A function cannot do what it is asked to with these arguments."""


def html_escaped(text: str) -> str:
    return "".join(_HTML.get(c, c) for c in text)


def escape_html(text: str) -> str:
    """Returns the text as html/template writes it."""
    return html_escaped(text).replace("+", "&#43;")


_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;", "\0": "\ufffd"}
_JS = {"\\": "\\\\", "'": "\\'", '"': '\\"', "<": "\\u003C", ">": "\\u003E", "&": "\\u0026", "=": "\\u003D"}


def _text(values: Sequence[Maybe]) -> str:
    if len(values) == 1 and values[0] is not None and values[0].type.kind == "string":
        return str(values[0].data)
    return sprint(
        [Value(STRING, to_text(each)) if each is None or each.type.kind == "pointer" else each for each in values]
    )


def _js(text: str) -> str:
    return "".join(_JS.get(c) or (c if c.isprintable() else f"\\u{ord(c):04X}") for c in text)


# -- items ----------------------------------------------------------------------------------------------------------


def _index(item: Maybe, *keys: Maybe) -> Maybe:
    if item is None:
        raise Unfit("index of untyped nil")
    for key in keys:
        item = indirect(item)
        if item.is_nil and item.type.kind == "pointer":
            raise Unfit("index of nil pointer")
        item = _at(item, key)
    return item


def _at(item: Value, key: Maybe) -> Value:
    if item.type.kind == "map":
        wanted = item.type.key or STRING
        if key is None or key.type is not wanted:
            raise Unfit(f"value has type {key.type.name if key else 'nil'}; should be {wanted.name}")
        assert item.type.elem is not None
        return element(item.type.elem, (item.data or {}).get(key.data))
    if item.type.kind not in ("slice", "string"):
        raise Unfit(f"can't index item of type {item.type.name}")
    data = item.data.encode() if item.type.kind == "string" else item.data or []
    position = _position(key, len(data))
    if position == len(data):
        raise Unfit(f"index out of range: {position}")
    return element(item.type.elem or UINT8, data[position], (id(item.data), position))


def _position(key: Maybe, limit: int) -> int:
    if key is None or key.type.kind not in ("int", "uint"):
        raise Unfit(f"cannot index slice/array with {'type ' + key.type.name if key else 'nil'}")
    if not 0 <= key.data <= limit:
        raise Unfit(f"index out of range: {key.data}")
    return int(key.data)


def _slice(item: Maybe, *bounds: Maybe) -> Maybe:
    if item is None:
        raise Unfit("slice of untyped nil")
    item = indirect(item)
    if item.type.kind not in ("slice", "string"):
        raise Unfit(f"can't slice item of type {item.type.name}")
    if len(bounds) > (2 if item.type.kind == "string" else 3):
        raise Unfit(f"too many slice indexes: {len(bounds)}")
    data = item.data.encode() if item.type.kind == "string" else item.data or []
    ends = [_position(bound, len(data)) for bound in bounds]
    start, end = (ends + [0, len(data)][len(ends) :])[:2]
    if start > end or (len(ends) > 2 and end > ends[2]):
        raise Unfit(f"invalid slice index: {start} > {end}")
    part = data[start:end]
    return Value(item.type, part.decode(errors="replace") if isinstance(part, bytes) else part)


def _len(item: Maybe) -> Maybe:
    if item is not None:
        item = indirect(item)
    if item is None or item.type.kind not in ("map", "slice", "string"):
        raise Unfit(
            f"len of {'nil pointer' if item is None or item.type.kind == 'pointer' else 'type ' + item.type.name}"
        )
    return Value(INT, len(item.data.encode()) if item.type.kind == "string" else len(item.data or ()))


# -- comparisons ----------------------------------------------------------------------------------------------------


def _basic(value: Maybe) -> str:
    kind = value.type.kind if value is not None else ""
    return ("int" if kind == "uint" else kind) if kind in BASIC else ""


def _equal(first: Maybe, second: Maybe) -> bool:
    if _basic(first) != _basic(second):
        if first is not None and second is not None:
            raise Unfit(f"incompatible types for comparison: {first.type.name} and {second.type.name}")
        return False
    if first is None or second is None:
        return _is_nil(first) == _is_nil(second)
    if _basic(first):
        return bool(first.data == second.data)
    if first.type.kind != second.type.kind:
        raise Unfit(f"non-comparable types {first.type.name} and {second.type.name}")
    if first.is_nil or second.is_nil:
        return first.is_nil == second.is_nil
    if not _is_comparable(second.type):
        raise Unfit(f"non-comparable type {second.type.name}")
    return first.type is second.type and (first.place == second.place if first.place else first.data == second.data)


def _is_nil(value: Maybe) -> bool:
    return value is None or value.is_nil


def _is_comparable(kind: Type) -> bool:
    if kind.kind == "struct":
        return all(_is_comparable(each.type) for each in kind.fields)
    return kind.kind not in ("map", "slice")


def _eq(first: Maybe, *others: Maybe) -> Maybe:
    if not others:
        raise Unfit("missing argument for comparison")
    return Value(BOOL, any(_equal(first, other) for other in others))


def _less(first: Maybe, second: Maybe) -> bool:
    if not _basic(first) or not _basic(second) or first is None or second is None:
        raise Unfit("invalid type for comparison")
    if _basic(first) != _basic(second):
        raise Unfit(f"incompatible types for comparison: {first.type.name} and {second.type.name}")
    if _basic(first) == "bool":
        raise Unfit("invalid type for comparison")
    ours, theirs = first.data, second.data
    return bool(ours.encode() < theirs.encode() if isinstance(ours, str) else ours < theirs)


def _comparison(holds: Callable[[Maybe, Maybe], bool]) -> Function:
    return Function(lambda first, second: Value(BOOL, holds(first, second)), (REFLECTED, REFLECTED))


def _many(call: Callable[[Sequence[Maybe]], str]) -> Function:
    return Function(lambda *values: Value(STRING, call(values)), (), ANY)


def _printf(text: Value, *values: Maybe) -> Maybe:
    return Value(STRING, sprintf(text.data, values))


def _shortcut(*_: Any) -> Maybe:
    raise Unfit("is decided while arguments are read")


def _call(function: Maybe, *_: Maybe) -> Maybe:
    raise Unfit("call of nil" if function is None else f"non-function of type {function.type.name}")


BUILTIN: dict[str, Function] = {
    "and": Function(_shortcut, (REFLECTED,), REFLECTED),
    "or": Function(_shortcut, (REFLECTED,), REFLECTED),
    "not": Function(lambda value: Value(BOOL, not is_true(value)), (REFLECTED,)),
    "index": Function(_index, (REFLECTED,), REFLECTED),
    "slice": Function(_slice, (REFLECTED,), REFLECTED),
    "len": Function(_len, (REFLECTED,)),
    "call": Function(_call, (REFLECTED,), REFLECTED),
    "eq": Function(_eq, (REFLECTED,), REFLECTED),
    "ne": _comparison(lambda first, second: not _equal(first, second)),
    "lt": _comparison(_less),
    "le": _comparison(lambda first, second: _less(first, second) or _equal(first, second)),
    "gt": _comparison(lambda first, second: not (_less(first, second) or _equal(first, second))),
    "ge": _comparison(lambda first, second: not _less(first, second)),
    "print": _many(sprint),
    "println": _many(lambda values: " ".join(map(plain, values)) + "\n"),
    "printf": Function(_printf, (STRING,), ANY),
    "html": _many(lambda values: Html(html_escaped(_text(values)))),
    "js": _many(lambda values: _js(_text(values))),
    "urlquery": _many(lambda values: quote_plus(_text(values), safe="")),
}

"""Values as text, the way Go's fmt package prints them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from isvc.serving.templates.values import STRING, Maybe, Value, indirect

_ADDRESS = "0xc000000000"
_WIDEST = 10_000  # wider columns are an attack on memory
_SHORT = {c: "\\" + letter for c, letter in zip('\a\b\f\n\r\t\v"\\', 'abfnrtv"\\', strict=True)}
_VERB = re.compile(r"%(?P<flags>[-+# 0]*)(?P<width>\*|\d*)(?:\.(?P<precision>\*|\d*))?(?P<verb>.|\Z)", re.DOTALL)


def to_text(value: Maybe, missing: str = "<no value>") -> str:
    """Returns what an action prints: pointers are followed."""
    if value is None:
        return missing
    end = indirect(value) if value.type.kind == "pointer" else value
    return "<nil>" if end.type.kind == "pointer" else plain(end)


def plain(value: Maybe, depth: int = 0) -> str:
    """`%v`."""
    if value is None:
        return "<nil>"
    data = value.data
    match value.type.kind:
        case "bool":
            return "true" if data else "false"
        case "float":
            return floating(data)
        case "pointer":
            if data is None:
                return "<nil>"
            target = value.target()
            is_compound = target.type.kind in ("struct", "map", "slice")
            return "&" + plain(target, depth + 1) if is_compound and depth == 0 else _ADDRESS
        case "map":
            return f"map[{' '.join(f'{plain(k, 1)}:{plain(v, 1)}' for k, v in value.items())}]"
        case "slice":
            return f"[{' '.join(plain(each, 1) for _, each in value.items())}]"
        case "struct" if not value.type.scalar:
            return f"{{{' '.join(plain(value.field(each), depth + 1) for each in value.type.fields)}}}"
        case "struct":
            return scalar(value)
    return str(data)


def scalar(value: Value) -> str:
    """Returns a struct that JSON writes as one value. A time that is not set is the first of the first year."""
    if value.data is None:
        return {"time": "0001-01-01 00:00:00 +0000 UTC", "quantity": "0", "number or text": "0"}.get(
            value.type.scalar, ""
        )
    if value.type.scalar == "time":
        return str(value.data).replace("T", " ").removesuffix("Z") + " +0000 UTC"
    return str(value.data)


def floating(number: float, verb: str = "g", precision: int | None = None) -> str:
    if verb != "g" or precision is not None:
        return f"{number:.{6 if precision is None else precision}{verb}}"
    if number == 0:
        return "-0" if str(number)[0] == "-" else "0"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) + exponent - 1
    if -4 <= power < 21:
        return f"{Decimal(repr(number)).normalize():f}"
    text = "".join(map(str, digits))
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def sprint(values: Sequence[Maybe]) -> str:
    """Spaces stand between two values that are both no strings."""
    text, after_string = "", True
    for value in values:
        is_string = value is not None and value.type.kind == "string"
        text += (" " if not is_string and not after_string else "") + plain(value)
        after_string = is_string
    return text


def sprintf(template: str, values: Sequence[Maybe]) -> str:
    rest = list(values)
    unused = len(rest)

    def number(text: str | None) -> int | None:
        nonlocal unused
        if text != "*":
            return int(text or 0) if text is not None else None
        unused -= 1
        given = rest.pop(0) if rest else None
        return given.data if given is not None and given.type.kind == "int" else 0

    def fill(match: re.Match[str]) -> str:
        nonlocal unused
        width, precision = number(match["width"]) or 0, number(match["precision"])
        verb, flags = match["verb"], match["flags"]
        if verb == "%" or not verb:
            return "%" if verb else "%!(NOVERB)"
        if not rest:
            return f"%!{verb}(MISSING)"
        unused -= 1
        if abs(width) > _WIDEST or (precision or 0) > _WIDEST:
            return "%!(BADWIDTH)"
        text = _format(verb, rest.pop(0), precision, flags)
        if "-" in flags or width < 0:
            return text.ljust(abs(width))
        zeros = "0" in flags and re.fullmatch(r"[-+]?[\d.]+", text)
        return text.zfill(width) if zeros else text.rjust(width)

    text = _VERB.sub(fill, template)
    if rest:
        text += f"%!(EXTRA {', '.join(f'{_type_name(each)}={plain(each)}' if each else '<nil>' for each in rest)})"
    return text


def _type_name(value: Value) -> str:
    return value.type.name


def _format(verb: str, value: Maybe, precision: int | None, flags: str) -> str:
    if verb == "T":
        return "<nil>" if value is None else value.type.name
    if value is None:
        return "<nil>" if verb == "v" else f"%!{verb}(<nil>)"
    if verb == "v":
        return _add_sign(plain(value), value, flags)
    if value.type.kind in ("slice", "map") and value.type.elem is not None:
        pairs = [(key, _format(verb, each, precision, flags)) for key, each in value.items()]
        if value.type.kind == "slice":
            return f"[{' '.join(text for _, text in pairs)}]"
        return f"map[{' '.join(f'{_format(verb, key, precision, flags)}:{text}' for key, text in pairs)}]"
    if value.type.scalar:
        value = Value(STRING, scalar(value))
    if value.type.kind == "struct":
        return f"{{{' '.join(_format(verb, value.field(each), precision, flags) for each in value.type.fields)}}}"
    form = _FORMS.get(value.type.kind, {}).get(verb)
    if form is None:
        return f"%!{verb}({_type_name(value)}={plain(value)})"
    return _add_sign(form(value.data, precision), value, flags)


def _add_sign(text: str, value: Value, flags: str) -> str:
    is_number = value.type.kind in ("int", "float")
    return "+" + text if "+" in flags and is_number and not text.startswith("-") else text


def _quote(text: str, _: int | None) -> str:
    return f'"{"".join(_SHORT.get(c) or (c if c.isprintable() else _escape(c)) for c in text)}"'


def _character(code: int) -> str:
    is_valid = 0 <= code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if is_valid else "\ufffd"


def _escape(character: str) -> str:
    code = ord(character)
    return rf"\x{code:02x}" if code < 128 else rf"\u{code:04x}"


def _decimal(number: int, precision: int | None) -> str:
    return str(number) if precision is None else f"{'-' if number < 0 else ''}{abs(number):0{precision}d}"


def _float(verb: str, number: float, precision: int | None) -> str:
    return floating(number, verb, precision)


_Form = Callable[[Any, int | None], str]
_INTEGERS: dict[str, _Form] = {
    "d": _decimal,
    "b": lambda number, _: f"{number:b}",
    "o": lambda number, _: f"{number:o}",
    "x": lambda number, _: f"{number:x}",
    "X": lambda number, _: f"{number:X}",
    "c": lambda number, _: _character(number),
    "q": lambda number, _: f"'{_quote(_character(number), None)[1:-1]}'",
}
_FORMS: dict[str, dict[str, _Form]] = {
    "string": {
        "s": lambda text, precision: text if precision is None else text[:precision],
        "q": _quote,
        "x": lambda text, _: text.encode().hex(),
        "X": lambda text, _: text.encode().hex().upper(),
    },
    "bool": {"t": lambda flag, _: "true" if flag else "false"},
    "int": _INTEGERS,
    "uint": _INTEGERS,
    "float": {verb: partial(_float, verb) for verb in "gef"},
}

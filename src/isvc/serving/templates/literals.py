"""Numbers, characters and strings as Go spells them."""

from __future__ import annotations

import re
from typing import NamedTuple

from isvc.serving.templates.errors import TemplateError

_LARGEST_INT, _LARGEST_UINT = 2**63 - 1, 2**64 - 1
_OCTAL = re.compile(r"([+-]?)0(_?[0-7][0-7_]*)")
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.))", re.DOTALL
)
_SHORT = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\", "'": "'", '"': '"'}


class Constant(NamedTuple):
    """A number: Go decides where it is used whether it is an integer."""

    integer: int | None
    floating: float | None
    looks_floating: bool


def number(text: str, at: int) -> Constant:
    try:
        whole = int(_OCTAL.sub(r"\g<1>0o\g<2>", text) if _OCTAL.fullmatch(text) else text, 0)
    except ValueError:
        return _parse_float(text, at)
    if not -_LARGEST_INT - 1 <= whole <= _LARGEST_UINT:
        raise TemplateError(f"integer overflow: {text!r}", at)
    return Constant(whole if whole <= _LARGEST_INT else None, float(whole), False)


def _parse_float(text: str, at: int) -> Constant:
    try:
        value = float.fromhex(text) if "x" in text.lower() and "p" in text.lower() else float(text)
    except (ValueError, OverflowError):
        value = float("inf")
    if value in (float("inf"), float("-inf")) or not re.search(r"[.eEpP]", text):
        raise TemplateError(f"illegal number syntax: {text!r}", at)
    is_whole = value.is_integer() and -(2.0**63) <= value < 2.0**63
    return Constant(int(value) if is_whole else None, value, True)


def character(text: str, at: int) -> Constant:
    content = _unescape(text[1:-1], at, other_quote='"')
    if len(content) != 1:
        raise TemplateError(f"malformed character constant: {text}", at)
    return Constant(ord(content), float(ord(content)), False)


def string(text: str, at: int) -> str:
    return text[1:-1].replace("\r", "") if text[0] == "`" else _unescape(text[1:-1], at, other_quote="'")


def _unescape(content: str, at: int, other_quote: str) -> str:
    def plain(match: re.Match[str]) -> str:
        short, two, four, eight, octal, _ = match.groups()
        if short and short != other_quote:
            return _SHORT[short]
        code = int(two or four or eight, 16) if two or four or eight else int(octal, 8) if octal else 0x110000
        if code > 0x10FFFF or (octal and code > 0xFF) or 0xD800 <= code < 0xE000:
            raise TemplateError("invalid syntax", at)
        return chr(code)

    return _ESCAPE.sub(plain, content)

"""A template cut into tokens: text, and what stands between `{{` and `}}`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import NamedTuple

from isvc.serving.templates.errors import TemplateError


class Token(NamedTuple):
    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end of template" else json.dumps(self.text)


KEYWORDS = frozenset(["block", "break", "continue", "define", "else", "end", "if", "nil", "range", "template", "with"])
_SPACE = " \t\r\n"
_OPEN = re.compile(r"\{\{(-(?=[ \t\r\n]))?")
_CLOSE = re.compile(r"(?:[ \t\r\n](-)|)\}\}")
_COMMENT = re.compile(r"[ \t\r\n]?/\*(.*?)\*/", re.DOTALL)
_SPACES = re.compile(r"[ \t\r\n]+?(?=[ \t\r\n]-\}\})|[ \t\r\n]+")
_WORD = re.compile(r"\w*")
_TERMINATOR = re.compile(r"[ \t\r\n.,|:()]|\}\}|\Z")
_STRING = re.compile(r'"(?:\\[^\n]|[^"\\\n])*"')
_RAW = re.compile(r"`[^`]*`")
_CHARACTER = re.compile(r"'(?:\\[^\n]|[^'\\\n])*'")
_NUMBER = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*(?:\.[0-7_]*)?"
    r"|0[bB][01_]*(?:\.[01_]*)?|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)
_LITERALS = {'"': ("string", _STRING), "`": ("string", _RAW), "'": ("character", _CHARACTER)}
_SIGNS = {"=": "=", "|": "|", "(": "(", ")": ")"}


def tokens(template: str) -> Iterator[Token]:
    position, trimmed = 0, False
    while (opening := _OPEN.search(template, position)) is not None:
        text = template[position : opening.start()]
        text = text.lstrip(_SPACE) if trimmed else text
        text = text.rstrip(_SPACE) if opening[1] else text
        if text:
            yield Token("text", text, position)
        position, closing = opening.end(), None
        if (comment := _COMMENT.match(template, position)) and (opening[1] or comment[0][0] == "/"):
            closing = _CLOSE.match(template, comment.end())
            if closing is None:
                raise TemplateError("comment ends before closing delimiter", position)
        elif re.compile(r"[ \t\r\n]/\*" if opening[1] else r"/\*").match(template, position):
            raise TemplateError("unclosed comment", position)
        else:
            yield Token("{{", "{{", opening.start())
            inside = _Action(template, position + len(opening[1] or ""))
            yield from inside
            closing = inside.closing
            yield Token("}}", "}}", closing.start())
        position, trimmed = closing.end(), bool(closing[1])
    rest = template[position:]
    rest = rest.lstrip(_SPACE) if trimmed else rest
    if rest:
        yield Token("text", rest, position)
    yield Token("end of template", "", len(template))


class _Action:
    """The tokens of one action. When they are read, `closing` says how it ended."""

    closing: re.Match[str]

    def __init__(self, template: str, position: int) -> None:
        self.template, self.position = template, position

    def __iter__(self) -> Iterator[Token]:
        depth = 0
        while (closing := _CLOSE.match(self.template, self.position)) is None:
            token = self._next()
            depth += (token.kind == "(") - (token.kind == ")")
            if depth < 0:
                raise TemplateError("unexpected right paren", token.at)
            self.position += len(token.text)
            yield token
        if depth:
            raise TemplateError("unclosed left paren", closing.start())
        self.closing = closing

    def _next(self) -> Token:
        template, at = self.template, self.position
        if at >= len(template):
            raise TemplateError("unclosed action", at)
        first = template[at]
        if first in _SPACE:
            return self._match("space", _SPACES)
        if first in _SIGNS:
            return Token(_SIGNS[first], first, at)
        if first == ":":
            if template[at : at + 2] != ":=":
                raise TemplateError("expected :=", at)
            return Token(":=", ":=", at)
        if first in _LITERALS:
            return self._match(*_LITERALS[first])
        if first == "$" or (first == "." and not template[at + 1 : at + 2].isdigit()):
            return self._name("variable" if first == "$" else "field", first)
        if first in "+-." or first in "0123456789":
            return self._number()
        if _is_word(first):
            return self._name("identifier", "")
        if " " < first <= "~":
            return Token("character sign", first, at)
        raise TemplateError(f"unrecognized character in action: {first!r}", at)

    def _match(self, kind: str, pattern: re.Pattern[str]) -> Token:
        match = pattern.match(self.template, self.position)
        if match is None:
            raise TemplateError(f"unterminated {kind}", self.position)
        return Token(kind, match[0], self.position)

    def _name(self, kind: str, sign: str) -> Token:
        start = self.position + len(sign)
        match = _WORD.match(self.template, start)
        word = "" if match is None else match[0]
        if not word.isascii():
            word = "".join(takewhile(_is_word, word))
        end = start + len(word)
        if _TERMINATOR.match(self.template, end) is None:
            raise TemplateError(f"bad character {self.template[end]!r}", end)
        text = self.template[self.position : end]
        if text == ".":
            kind = "dot"
        elif text in ("true", "false"):
            kind = "bool"
        elif text in KEYWORDS:
            kind = text
        return Token(kind, text, self.position)

    def _number(self) -> Token:
        token = self._match("number", _NUMBER)
        end = self.position + len(token.text)
        following = self.template[end : end + 1]
        if _is_word(following) or following in ("+", "-"):
            raise TemplateError(f"bad number syntax: {token.text + following!r}", token.at)
        return token


def _is_word(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdecimal()

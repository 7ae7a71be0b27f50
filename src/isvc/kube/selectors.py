"""Label and field selectors: the text of a query (`a=b,c in (x,y),!d`) or a `LabelSelector` object, asked of labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from isvc.kube.names import DNS_SUBDOMAIN
from isvc.kube.objects import Object, dig

_TOKEN = re.compile(r"==|!=|[=!<>(),]|[^\s=!<>(),]+")
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)
_WORDS = {"in": "in", "notin": "notin", "=": "=", "==": "=", "!=": "!=", ">": ">", "<": "<"}
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}

Labels: TypeAlias = Mapping[str, str]


class SelectorError(ValueError):
    """The text or object is no selector."""


def is_label_key(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    good_prefix = not slash or (len(prefix) <= 253 and DNS_SUBDOMAIN.fullmatch(prefix) is not None)
    return good_prefix and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    return not text or _NAME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One demand on one label. `operator` is one of: = != in notin exists ! > <"""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not is_label_key(self.key):
            raise SelectorError(f"invalid label key {self.key!r}")
        for value in self.values:
            if not is_label_value(value):
                raise SelectorError(f"invalid label value {value!r}")
        if self.operator in ("in", "notin") and not self.values:
            raise SelectorError("for 'in', 'notin' operators, values set can't be empty")
        if self.operator in ("exists", "!") and self.values:
            raise SelectorError("values set must be empty for exists and does not exist")
        if self.operator in ("<", ">") and _integer(self.values[0]) is None:
            raise SelectorError("for 'Gt', 'Lt' operators, the value must be an integer")

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "=" | "in":
                return value is not None and value in self.values
            case "!=" | "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        number, bound = _integer(value), _integer(self.values[0])
        if number is None or bound is None:
            return False
        return number > bound if self.operator == ">" else number < bound

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
        return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements have to hold; no requirements select everything."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        return _sorted_selector(_Parser(text).requirements())

    @classmethod
    def from_spec(cls, spec: Object) -> LabelSelector:
        """Reads `{matchLabels, matchExpressions}`; an empty one selects everything."""
        wanted = [Requirement(key, "=", (value,)) for key, value in (spec.get("matchLabels") or {}).items()]
        for expression in spec.get("matchExpressions") or []:
            operator = _OPERATORS.get(expression.get("operator", ""))
            if operator is None:
                raise SelectorError(f"{expression.get('operator')!r} is not a valid label selector operator")
            wanted.append(Requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
        return _sorted_selector(wanted)

    @classmethod
    def of(cls, labels: Labels) -> LabelSelector:
        return _sorted_selector(Requirement(key, "=", (value,)) for key, value in labels.items())

    def matches(self, labels: Labels) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """`metadata.name=a,status.phase!=Running`: equality on fields, a missing field being the empty string."""

    terms: tuple[tuple[str, bool, str], ...] = ()  # path, whether equal is wanted, value

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        return cls(tuple(_field_term(text, part) for part in sorted(_split(text)) if part))

    def matches(self, obj: Object) -> bool:
        return all((_field(obj, path) == value) is equal for path, equal, value in self.terms)

    def __bool__(self) -> bool:
        return bool(self.terms)

    def __str__(self) -> str:
        return ",".join(f"{path}{'=' if equal else '!='}{_escape(value)}" for path, equal, value in self.terms)


def _sorted_selector(requirements: Iterable[Requirement]) -> LabelSelector:
    return LabelSelector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"[+-]?\d+", text, re.ASCII) else None


class _Parser:
    """Recursive descent over the tokens of a label selector; "" stands for the end."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = [*_TOKEN.findall(text), ""]
        self._at = 0

    def requirements(self) -> Iterator[Requirement]:
        if self._peek() == "":
            return
        while True:
            yield self._requirement()
            match self._next():
                case "":
                    return
                case ",":
                    if self._peek() != "!":
                        self._expect_word(self._peek(), "identifier after ','")
                case found:
                    raise SelectorError(f"found '{found}', expected: ',' or 'end of string'")

    def _requirement(self) -> Requirement:
        absent = self._peek() == "!"
        if absent:
            self._next()
        key = self._expect_word(self._next(), "!, identifier, or 'end of string'")
        if self._peek() in ("", ","):
            return Requirement(key, "!" if absent else "exists")
        word = self._next()
        operator = _WORDS.get(word)
        if operator is None or absent:
            raise SelectorError(f"found '{word}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if operator in ("in", "notin") else (self._value(),)
        return Requirement(key, operator, values)

    def _value(self) -> str:
        return "" if self._peek() in ("", ",") else self._expect_word(self._next(), "identifier")

    def _values(self) -> tuple[str, ...]:
        if (found := self._next()) != "(":
            raise SelectorError(f"found '{found}' expected: '('")
        values, pending = [], ""
        expected = "',', ')' or identifier"
        while (found := self._next()) != ")":
            if found == ",":
                values.append(pending)
                pending, expected = "", "',', or identifier"
            elif pending:
                raise SelectorError(f"found '{found}', expected: ',' or ')'")
            else:
                pending = self._expect_word(found, expected)
        return tuple(sorted({*values, pending}))

    def _expect_word(self, found: str, expected: str) -> str:
        if not found or found[0] in "=!<>(),":
            raise SelectorError(f"found '{found}', expected: {expected}")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token


def _split(text: str) -> list[str]:
    """Splits at commas that no backslash escapes."""
    return re.findall(r"(?:\\.|[^,\\]|\\$)+", text, re.DOTALL)


def _field_term(text: str, part: str) -> tuple[str, bool, str]:
    match = re.match(r"(.*?)(!=|==|=)(.*)", part, re.DOTALL)
    if match is None:
        raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
    return match[1], match[2] != "!=", _unescape(match[3])


def _unescape(value: str) -> str:
    if bad := re.search(r"\\([^\\,=]|$)", re.sub(r"\\[\\,=]", "", value)):
        raise SelectorError(f"invalid field selector: invalid escape sequence: {bad[0]}")
    if bare := re.search(r"[,=]", re.sub(r"\\.", "", value)):
        raise SelectorError(f"invalid field selector: unescaped character in value: {bare[0]}")
    return re.sub(r"\\([\\,=])", r"\1", value)


def _escape(value: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", value)


def _field(obj: Object, path: str) -> str:
    value = dig(obj, *path.split("."))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)

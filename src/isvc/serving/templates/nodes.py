"""What a template is made of once it is parsed. `at` is where a part begins in the template's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from isvc.serving.templates.literals import Constant


@dataclass(frozen=True, slots=True)
class Dot:
    at: int


@dataclass(frozen=True, slots=True)
class Nil:
    at: int


@dataclass(frozen=True, slots=True)
class Bool:
    at: int
    value: bool


@dataclass(frozen=True, slots=True)
class Number:
    at: int
    value: Constant
    text: str


@dataclass(frozen=True, slots=True)
class String:
    at: int
    value: str


@dataclass(frozen=True, slots=True)
class Function:
    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Field:
    """`.A.B`, from the dot."""

    at: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name.A.B`; the name is with its `$`."""

    at: int
    name: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chain:
    """`(something).A.B`."""

    at: int
    start: Operand
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    at: int
    words: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    at: int
    commands: tuple[Command, ...]
    declares: tuple[str, ...] = ()
    assigns: bool = False


Literal: TypeAlias = Dot | Nil | Bool | Number | String
Operand: TypeAlias = Literal | Function | Field | Variable | Chain | Pipeline


@dataclass(frozen=True, slots=True)
class Text:
    at: int
    text: str


@dataclass(frozen=True, slots=True)
class Action:
    """`words` are its text where it has no variables: from the same dot, equal words print the same."""

    at: int
    pipeline: Pipeline
    words: str = ""


@dataclass(frozen=True, slots=True)
class Branch:
    """An `if`, `with` or `range`."""

    at: int
    keyword: str
    pipeline: Pipeline
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """`{{template "name" pipeline}}`."""

    at: int
    name: str
    pipeline: Pipeline | None


@dataclass(frozen=True, slots=True)
class Leave:
    """`break` or `continue`."""

    at: int
    keyword: str


Node: TypeAlias = Text | Action | Branch | Call | Leave


@dataclass(frozen=True, slots=True)
class Template:
    body: tuple[Node, ...]
    defined: Mapping[str, tuple[Node, ...]] = field(default_factory=dict)

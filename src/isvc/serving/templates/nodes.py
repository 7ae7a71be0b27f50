"""What a template is made of once it is parsed. `at` is where a part begins in the template's text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from isvc.serving.templates.literals import Constant


class Part(msgspec.Struct, frozen=True):
    at: int


class Dot(Part, frozen=True):
    pass


class Nil(Part, frozen=True):
    pass


class Bool(Part, frozen=True):
    value: bool


class Number(Part, frozen=True):
    value: Constant
    text: str


class String(Part, frozen=True):
    value: str


class Function(Part, frozen=True):
    name: str


class Field(Part, frozen=True):
    """`.A.B`, from the dot."""

    names: tuple[str, ...]


class Variable(Part, frozen=True):
    """`$name.A.B`; the name is with its `$`."""

    name: str
    names: tuple[str, ...] = ()


class Chain(Part, frozen=True):
    """`(something).A.B`."""

    start: Operand
    names: tuple[str, ...]


class Command(Part, frozen=True):
    words: tuple[Operand, ...]


class Pipeline(Part, frozen=True):
    commands: tuple[Command, ...]
    declares: tuple[str, ...] = ()
    assigns: bool = False


Literal: TypeAlias = Dot | Nil | Bool | Number | String
Operand: TypeAlias = Literal | Function | Field | Variable | Chain | Pipeline


class Text(Part, frozen=True):
    text: str


class Action(Part, frozen=True):
    """`words` are its text where it has no variables: from the same dot, equal words print the same."""

    pipeline: Pipeline
    words: str = ""


class Branch(Part, frozen=True):
    """An `if`, `with` or `range`."""

    keyword: str
    pipeline: Pipeline
    body: tuple[Node, ...]
    otherwise: tuple[Node, ...]


class Call(Part, frozen=True):
    """`{{template "name" pipeline}}`."""

    name: str
    pipeline: Pipeline | None


class Leave(Part, frozen=True):
    """`break` or `continue`."""

    keyword: str


Node: TypeAlias = Text | Action | Branch | Call | Leave


class Template(msgspec.Struct, frozen=True):
    body: tuple[Node, ...]
    defined: Mapping[str, tuple[Node, ...]] = {}

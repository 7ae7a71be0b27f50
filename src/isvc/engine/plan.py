"""What a controller wants, as a value: a plan of parts, each of which answers exactly one of three things.

`Want`    these children, and no others of the kinds this part declares
`Retire`  nothing of this part may exist
`Hold`    it cannot be decided yet: leave alone what exists

`Hold` is why a missing runtime never deletes live traffic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from isvc.kube.objects import Object
from isvc.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Child:
    """An object that should exist, with only the fields that its controller cares about.

    `yields` names fields (dotted paths such as `spec.replicas`) that another controller may own: given when the
    child is created, and left as they are from then on.
    """

    resource: Resource
    manifest: Object
    yields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Want:
    children: tuple[Child, ...]


@dataclass(frozen=True, slots=True)
class Retire:
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Hold:
    reason: str
    message: str


Answer: TypeAlias = Want | Retire | Hold


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a plan. `kinds` are the resources it may prune; `selector` tells its children from other parts'."""

    name: str
    answer: Answer
    kinds: frozenset[Resource]
    names: frozenset[str] | None = None  # None: any name that the owner controls and no other part wants


@dataclass(frozen=True, slots=True)
class Plan:
    parts: tuple[Part, ...] = field(default=())

    def wanted(self) -> tuple[Child, ...]:
        return tuple(child for part in self.parts if isinstance(part.answer, Want) for child in part.answer.children)

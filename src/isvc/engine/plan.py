"""What a controller wants, as a value: a plan of parts, each of which answers exactly one of three things.

`Want`    these children, and no others of the kinds this part declares
`Retire`  nothing of this part may exist
`Hold`    it cannot be decided yet: leave alone what exists

`Hold` is why a missing runtime never deletes live traffic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from isvc.engine.policies import WHOLE, WritePolicy
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Child:
    """An object that should exist, with only the fields that its controller cares about.

    The policy says which differences make an update due. `owned=False` is an object that several owners share: it gets
    no owner reference and is never deleted.
    """

    resource: Resource
    manifest: Object
    policy: WritePolicy = WHOLE
    owned: bool = True


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
    """One part of a plan. `kinds` are the resources that it may prune, `names` which of their objects."""

    name: str
    answer: Answer
    kinds: frozenset[Resource]
    names: frozenset[str] | None = None  # None: any name that the owner controls and no other part wants or holds

    def covers(self, resource: Resource, name: str) -> bool:
        return resource in self.kinds and (self.names is None or name in self.names)


@dataclass(frozen=True, slots=True)
class Plan:
    parts: tuple[Part, ...] = field(default=())

    def wanted(self) -> tuple[Child, ...]:
        return tuple(child for part in self.parts if isinstance(part.answer, Want) for child in part.answer.children)

    def wanted_names(self) -> frozenset[tuple[Resource, str]]:
        return frozenset((child.resource, name_of(child.manifest)) for child in self.wanted())

    def holds(self, resource: Resource, name: str) -> bool:
        """Whether the object may belong to a part that cannot be decided yet."""
        return any(isinstance(part.answer, Hold) and part.covers(resource, name) for part in self.parts)

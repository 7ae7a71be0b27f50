"""What a controller wants, as a value: a plan of parts, each of which answers exactly one of three things.

`Want`    these children, and no others of the kinds this part declares
`Retire`  nothing of this part may exist
`Hold`    it cannot be decided yet: leave alone what exists

`Hold` is why a missing runtime never deletes live traffic.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from isvc.kube.objects import Object, name_of
from isvc.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Child:
    """An object that should exist, with only the fields that its controller cares about.

    Paths are dotted, such as `spec.replicas`; a last key that has dots itself stands in brackets:
    `yields`    fields that another controller may own: given when the child is created, and left as they are then
    `heeds`     fields of which a difference makes an update due; () means labels, annotations and all content.
                An update that is due replaces the whole child.
    `includes`  maps that others may add to: an update is due when something of ours is missing there
    `keeps`     maps of which an update leaves in place what others added; with `heeds` () these are both of metadata.
                Where a map is both included and kept, what we no longer want there makes an update due, too.
    `owned`     False for an object that several owners share: no owner reference, and never deleted
    """

    resource: Resource
    manifest: Object
    yields: tuple[str, ...] = ()
    heeds: tuple[str, ...] = ()
    includes: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()
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

    def wants(self, resource: Resource, name: str) -> bool:
        return any(child.resource == resource and name_of(child.manifest) == name for child in self.wanted())

    def holds(self, resource: Resource, name: str) -> bool:
        """Whether the object may belong to a part that cannot be decided yet."""
        return any(isinstance(part.answer, Hold) and part.covers(resource, name) for part in self.parts)

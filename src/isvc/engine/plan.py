"""What a controller wants, as a value: a plan of parts, each of which answers exactly one of three things.

`Want`    these children, and no others of the kinds this part declares
`Retire`  nothing of this part may exist
`Hold`    it cannot be decided yet: leave alone what exists

`Hold` is why a missing runtime never deletes live traffic. What may be pruned follows from these answers alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from isvc.engine.policies import WHOLE, WritePolicy
from isvc.kube.objects import Key, Object, name_of, namespace_of
from isvc.kube.resource import Resource

Reference: TypeAlias = tuple[Resource, Key]
"""Names an object that need not exist."""


class ChildKey(NamedTuple):
    resource: Resource
    name: str
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class Late:
    """Fields of a manifest that are made when it is written, and again once other children are there.

    `fill` makes them. It takes those of `others` that were just created: the API server may have given them something
    that the fields name.
    """

    others: tuple[ChildKey, ...]
    fill: Callable[[Sequence[Object]], Object]


@dataclass(frozen=True, slots=True)
class Child:
    """An object that should exist, with only the fields that its controller cares about.

    The policy says which differences make an update due. `owned=False` is an object without an owner reference. With
    `labels` it belongs to its owner all the same, and those tell it from somebody else's of that name; without, several
    owners share it, and it is never deleted.
    """

    resource: Resource
    manifest: Object
    policy: WritePolicy = WHOLE
    owned: bool = True
    labels: Mapping[str, str] | None = None
    late: Late | None = None
    key: ChildKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        key = ChildKey(self.resource, name_of(self.manifest), namespace_of(self.manifest))
        object.__setattr__(self, "key", key)

    def fill(self, others: Sequence[Object] = ()) -> Child:
        """Returns the child with all its fields."""
        if self.late is None:
            return self
        return replace(self, manifest={**self.manifest, **self.late.fill(others)}, late=None)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of an object in which several owners have entries, each of its own.

    `change` takes the object as it is, and returns the merge patch that it lacks or None. A write meets the version
    that was looked at: when somebody else was faster, `change` is asked again. `live` is the object as it was observed;
    where there is none, `change` is given None and returns the object to create, or None.
    """

    key: ChildKey
    change: Callable[[Object | None], Object | None]
    live: Object | None = None


@dataclass(frozen=True, slots=True)
class Want:
    children: tuple[Child, ...]
    edits: tuple[Edit, ...] = ()


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
    """One part of a plan.

    `kinds`        the resources that it may prune, wherever the owner has children of them
    `names`        which of their objects; None for any that no other part wants or holds
    `found`        live objects without an owner reference that it may prune as well: the owner knows which
    `independent`  whether parts after it are applied though something of it is refused
    """

    name: str
    answer: Answer
    kinds: frozenset[Resource] = frozenset()
    names: frozenset[str] | None = None
    found: tuple[tuple[Resource, Object], ...] = ()
    independent: bool = False

    def covers(self, key: ChildKey) -> bool:
        return key.resource in self.kinds and (self.names is None or key.name in self.names)


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a plan ends early: the part that cannot be planned, and the condition that says so.

    `remedy`   what would mend it, where that is no change of the object itself
    `subject`  what the message is about, for those who read it apart from its condition
    `waits`    whether it passes by itself
    `missing`  the kind of object that was not found: who may not read it cannot know that
    """

    part: str
    condition: str
    reason: str
    message: str
    remedy: str = ""
    subject: str = ""
    waits: bool = False
    missing: Resource | None = None

    @property
    def hold(self) -> Hold:
        return Hold(self.reason, self.message)

    @property
    def sentence(self) -> str:
        return f"{self.subject}: {self.message}" if self.subject else self.message


@dataclass(frozen=True, slots=True)
class Plan:
    """What should exist for an object. A kind extends it by what its status has to know of how it came about.

    `stop`        why there is not all of it
    `suspended`   whether it is not to be applied, though it could be
    `pause`       seconds to wait before it is applied, from when such a plan is first made
    `references`  what else it depends on, there or not: a change of these brings the object back. None: not known,
                  a change of anything that may be referred to does
    """

    parts: tuple[Part, ...] = ()
    stop: Stop | None = None
    suspended: bool = False
    pause: float = 0.0
    references: frozenset[Reference] | None = None

    def wanted(self) -> tuple[Child, ...]:
        return tuple(child for part in self.parts if isinstance(part.answer, Want) for child in part.answer.children)

    def wanted_keys(self) -> frozenset[ChildKey]:
        return frozenset(child.key for child in self.wanted())

    def holds(self, key: ChildKey) -> bool:
        """Returns whether the object may belong to a part that cannot be decided yet."""
        return any(isinstance(part.answer, Hold) and part.covers(key) for part in self.parts)

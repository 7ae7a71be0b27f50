"""What became of a plan, child by child."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from isvc.engine.plan import ChildKey
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.resource import Resource


@dataclass(frozen=True, slots=True)
class Created:
    live: Object
    repaired: bool = False  # it was there before, and somebody deleted it


@dataclass(frozen=True, slots=True)
class Updated:
    live: Object
    repaired: bool  # somebody else had changed it; the manifest is the same as before


@dataclass(frozen=True, slots=True)
class Unchanged:
    live: Object


@dataclass(frozen=True, slots=True)
class Deleted:
    pass


@dataclass(frozen=True, slots=True)
class Rejected:
    """The API server refused the child; trying the same again would not help."""

    error: ApiError

    @property
    def message(self) -> str:
        return self.error.message


@dataclass(frozen=True, slots=True)
class Taken:
    """An object of that name exists and is not the owner's; it is left alone."""

    message: str


Result: TypeAlias = Created | Updated | Unchanged | Deleted | Rejected | Taken


@dataclass(frozen=True, slots=True)
class Refusal:
    """The child at which a plan came to a halt."""

    part: str
    child: ChildKey
    result: Rejected | Taken


@dataclass(slots=True)
class Outcome:
    """`namespace` is the owner's. `completed` are children that were written again, to name what others were given."""

    results: dict[ChildKey, Result] = field(default_factory=dict)
    completed: dict[ChildKey, Result] = field(default_factory=dict)
    refusal: Refusal | None = None
    namespace: str = ""

    def live(self, resource: Resource, name: str, namespace: str | None = None) -> Object | None:
        """Returns the object as the API server has it now, if the plan touched it.

        Without a namespace it is looked for in the owner's.
        """
        place = self.namespace if namespace is None else namespace
        result = self.results.get(ChildKey(resource, name, place if resource.namespaced else ""))
        return result.live if isinstance(result, Created | Updated | Unchanged) else None

    @property
    def has_repaired(self) -> bool:
        return any(isinstance(result, Created | Updated) and result.repaired for result in self.results.values())

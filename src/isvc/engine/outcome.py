"""What became of a plan, child by child."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.resource import Resource


class ChildKey(NamedTuple):
    resource: Resource
    name: str


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
    results: dict[ChildKey, Result] = field(default_factory=dict)
    refusal: Refusal | None = None

    def live(self, resource: Resource, name: str) -> Object | None:
        """The object as the API server has it now, if the plan touched it."""
        result = self.results.get(ChildKey(resource, name))
        return result.live if isinstance(result, Created | Updated | Unchanged) else None

    @property
    def repaired(self) -> bool:
        return any(isinstance(result, Created | Updated) and result.repaired for result in self.results.values())

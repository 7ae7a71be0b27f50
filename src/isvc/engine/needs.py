"""What planning lacks and no informer holds: secrets, the server's version, a dry run.

Which secret matters shows only while credentials are worked out: the service account names it, or the pod does. So a
decision is made on what is known. It asks `Answers` for the rest, which raises `Needs`; `gather` finds that out and
decides again. This keeps decisions pure and in one place, and nothing is read that is not needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final, Generic, TypeAlias, TypeVar

from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.resource import Resource

T = TypeVar("T")

UNKNOWN: Final = object()


class Need(Generic[T]):
    """A question about a cluster, and for how long an answer holds. Equal needs are the same question."""

    __slots__ = ()

    def lasts(self, answer: T) -> float:
        """Returns for how many seconds the answer will do for others who ask the same."""
        return 0.0

    @property
    def is_shared(self) -> bool:
        """Whether those who ask while an answer is on its way take the same one."""
        return False


@dataclass(frozen=True, slots=True)
class Stored(Need[Object | None]):
    """An object as the API server has it; None if it does not exist.

    One that was read `max_age` seconds ago will do, or found missing `max_absence` seconds ago.
    """

    resource: Resource
    name: str
    namespace: str = ""
    max_age: float = 0.0
    max_absence: float = 0.0

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.namespace}/{self.name}"

    def lasts(self, answer: Object | None) -> float:
        return self.max_absence if answer is None else self.max_age


@dataclass(frozen=True, slots=True)
class ServerVersion(Need[tuple[str, str]]):
    """The major and minor version of Kubernetes."""

    def lasts(self, answer: tuple[str, str]) -> float:
        return inf


@dataclass(frozen=True, slots=True)
class DryRun(Need[ApiError | None]):
    """Whether the API server would create an object: None, or why it would not.

    Two that have the same `digest` are the same question. Consent lasts; what was refused may be allowed later.
    """

    resource: Resource
    digest: int
    manifest: Object = field(compare=False, repr=False)

    @property
    def is_shared(self) -> bool:
        return True

    def lasts(self, answer: ApiError | None) -> float:
        return inf if answer is None else 0.0


class Needs(Exception):
    """A decision cannot be made before these are known."""

    def __init__(self, *needs: Need[Any]) -> None:
        super().__init__(f"not known yet: {', '.join(map(str, needs))}")
        self.needs = needs


class Answers:
    """What is known for one decision. It grows while that is being made, and no answer ever changes meanwhile."""

    def __init__(
        self,
        known: Mapping[Need[Any], Any] | None = None,
        recall: Callable[[Need[Any]], Any] = lambda need: UNKNOWN,
    ) -> None:
        """`recall` gives an earlier answer that still holds, or `UNKNOWN`."""
        self._known = dict(known or {})
        self._recall = recall

    def __getitem__(self, need: Need[T]) -> T:
        """Raises `Needs` for what is not known."""
        if not self._knows(need):
            raise Needs(need)
        answer: T = self._known[need]
        return answer

    def expect(self, *needs: Need[Any]) -> None:
        """Asks for several at once, so that they can be found out side by side."""
        missing = [need for need in dict.fromkeys(needs) if not self._knows(need)]
        if missing:
            raise Needs(*missing)

    def add(self, answers: Mapping[Need[Any], Any]) -> None:
        self._known.update(answers)

    def _knows(self, need: Need[Any]) -> bool:
        if need not in self._known:
            answer = self._recall(need)
            if answer is UNKNOWN:
                return False
            self._known[need] = answer
        return True


Ask: TypeAlias = Callable[[Iterable[Need[Any]]], Awaitable[Mapping[Need[Any], Any]]]


async def gather(decide: Callable[[], T], answers: Answers, ask: Ask) -> T:
    """Returns what is decided once everything is known: what the decision lacks is found out, and it starts over."""
    while True:
        try:
            return decide()
        except Needs as missing:
            answers.add(await ask(missing.needs))

"""Validation of our kinds: pure functions that name the field, the fault, and what would be right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from isvc.kube.objects import Object, is_being_deleted


class Problem(NamedTuple):
    path: str
    fault: str

    def __str__(self) -> str:
        return f"{self.path}: {self.fault}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether an object may be stored: it may unless there are problems. Warnings are reported either way."""

    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, problems: Iterable[Problem], warnings: Iterable[str] = ()) -> Verdict:
        return cls(tuple(problems), tuple(warnings))

    @property
    def message(self) -> str:
        return "; ".join(map(str, self.problems))


GOOD = Verdict()


def changes_nothing(old: Object | None, new: Object) -> bool:
    """Returns whether an update leaves alone all that is validated: objects older than a rule can still be kept up."""
    return (
        old is not None
        and all(old.get(part) == new.get(part) for part in {*old, *new} - {"metadata", "status", "apiVersion"})
        and (old.get("metadata") or {}).get("annotations") == (new.get("metadata") or {}).get("annotations")
    )


def is_exempt(old: Object | None, new: Object) -> bool:
    """Returns whether an update is never refused: of what is being deleted, or one that changes nothing of note."""
    return old is not None and (is_being_deleted(new) or changes_nothing(old, new))

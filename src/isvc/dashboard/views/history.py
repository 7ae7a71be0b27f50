"""The specs that a service had, and what each edit changed."""

from __future__ import annotations

from dataclasses import dataclass

from isvc.insight.operations.history import History, difference, summary
from isvc.kube.objects import creation_time_of, generation_of


@dataclass(frozen=True, slots=True)
class Edit:
    """`revision` was replaced by the next one at `when`; `diff` is what that changed."""

    revision: int
    when: str
    summary: str
    diff: str


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """The latest edit first."""

    current: int
    edits: tuple[Edit, ...]


def history_page(history: History) -> HistoryPage:
    specs, numbers = history.specs, [int(each["revision"]) for each in history.earlier]
    current = generation_of(history.service)
    following = [*numbers[1:], current]
    edits = [
        Edit(
            revision=numbers[place],
            when=creation_time_of(revision),
            summary=summary(specs[place], specs[place + 1]),
            diff=difference(
                {"spec": specs[place]},
                {"spec": specs[place + 1]},
                f"revision {numbers[place]}",
                f"revision {following[place]}",
            ),
        )
        for place, revision in enumerate(history.earlier)
    ]
    return HistoryPage(current, tuple(reversed(edits)))

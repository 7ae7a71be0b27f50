"""How many pods of a Job have ended, each counted exactly once, whatever happens to the pod or to this process.

As kube-controller-manager does it: pods carry a finalizer, so that none goes uncounted. The uid of a pod that has ended
is first written to the Job's status, then the finalizer is removed, and then the uid becomes a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from isvc.kube.objects import Object, annotations_of, dig, finalizers_of, is_being_deleted, uid_of
from isvc.local.controllers.jobs import failure_policy

FINALIZER: Final = "batch.kubernetes.io/job-tracking"


INDEX: Final = "batch.kubernetes.io/job-completion-index"


@dataclass(frozen=True, slots=True)
class Tally:
    """`waiting` has the uids of pods that are counted as soon as they have lost their finalizer."""

    succeeded: int
    failed: int
    waiting_succeeded: tuple[str, ...]
    waiting_failed: tuple[str, ...]
    completed: frozenset[int]  # indexes
    ended: tuple[Object, ...]  # pods whose finalizer can go once the status is written

    @property
    def all_succeeded(self) -> int:
        return self.succeeded + len(self.waiting_succeeded)

    @property
    def all_failed(self) -> int:
        return self.failed + len(self.waiting_failed)

    @property
    def is_settled(self) -> bool:
        return not (self.ended or self.waiting_succeeded or self.waiting_failed)

    def to_status(self) -> Object:
        status: Object = {}
        if self.succeeded:
            status["succeeded"] = self.succeeded
        if self.failed:
            status["failed"] = self.failed
        if self.completed:
            status["completedIndexes"] = format_indexes(self.completed)
        waiting = {"succeeded": [*self.waiting_succeeded], "failed": [*self.waiting_failed]}
        return status | {"uncountedTerminatedPods": {key: uids for key, uids in waiting.items() if uids}}


def is_indexed(job: Object) -> bool:
    return bool(dig(job, "spec", "completionMode") == "Indexed")


def has_failed(job: Object, pod: Object) -> bool:
    """Returns whether a pod has failed.

    One that is being deleted has, too, unless the Job wants to wait for its end.
    """
    phase = dig(pod, "status", "phase")
    if dig(job, "spec", "podReplacementPolicy") == "Failed":
        return bool(phase == "Failed")
    return phase == "Failed" or (is_being_deleted(pod) and phase != "Succeeded")


def tally(job: Object, pods: Sequence[Object]) -> Tally:
    status = job.get("status") or {}
    held = {uid_of(pod): pod for pod in pods if FINALIZER in finalizers_of(pod)}
    succeeded = [pod for pod in held.values() if dig(pod, "status", "phase") == "Succeeded"]
    failed = [pod for pod in held.values() if has_failed(job, pod)]
    counted_failed, waiting_failed = _count(status, "failed", held, [p for p in failed if not _is_ignored(job, p)])
    completed = parse_indexes(status.get("completedIndexes", ""))
    counted_succeeded, waiting_succeeded = _count(status, "succeeded", held, [] if is_indexed(job) else succeeded)
    if is_indexed(job):
        limit = dig(job, "spec", "completions") or 0
        completed |= {index for pod in succeeded if (index := index_of(pod)) is not None and index < limit}
        counted_succeeded = len(completed)
    return Tally(
        counted_succeeded,
        counted_failed,
        waiting_succeeded,
        waiting_failed,
        frozenset(completed),
        (*succeeded, *failed),
    )


def _count(status: Object, kind: str, held: dict[str, Object], ended: Sequence[Object]) -> tuple[int, tuple[str, ...]]:
    """Returns the number that the status should give, and the uids that still wait for the loss of their finalizer."""
    before: list[str] = dig(status, "uncountedTerminatedPods", kind) or []
    waiting = dict.fromkeys([uid for uid in before if uid in held] + [uid_of(pod) for pod in ended])
    released = sum(uid not in held for uid in before)
    return status.get(kind, 0) + released, tuple(waiting)


def _is_ignored(job: Object, pod: Object) -> bool:
    rule = failure_policy.match(job, pod)
    return rule is not None and rule.action == "Ignore"


def index_of(pod: Object) -> int | None:
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdigit() else None


def parse_indexes(text: str) -> set[int]:
    indexes: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        indexes.update(range(int(first), int(last or first) + 1))
    return indexes


def format_indexes(indexes: Iterable[int]) -> str:
    ranges: list[list[int]] = []
    for index in sorted(indexes):
        if ranges and index == ranges[-1][1] + 1:
            ranges[-1][1] = index
        else:
            ranges.append([index, index])
    return ",".join(_text(first, last) for first, last in ranges)


def _text(first: int, last: int) -> str:
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"

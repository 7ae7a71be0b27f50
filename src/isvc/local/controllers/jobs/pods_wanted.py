"""Which pods a Job should have next: how many more, with which indexes, and which are too many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from isvc.kube.objects import Object, deep_copy, dig, is_being_deleted, labels_of, name_of
from isvc.kube.resource import JOBS
from isvc.kube.timestamps import parse_timestamp
from isvc.local.controllers.jobs.tally import FINALIZER, INDEX, Tally, has_failed, index_of, is_indexed
from isvc.local.controllers.pod_writes import BURST, pod_of
from isvc.local.controllers.pods import is_active, is_terminating
from isvc.local.controllers.replicasets import first_to_go

_LONGEST_DELAY: Final = 60.0  # seconds; a cluster takes ten times as long


@dataclass(frozen=True, slots=True)
class Change:
    create: tuple[Object, ...] = ()
    delete: tuple[Object, ...] = ()


def change(job: Object, pods: Sequence[Object], counts: Tally) -> Change:
    """Returns what to create and delete while a Job is under way."""
    active = [pod for pod in pods if is_active(pod)]
    surplus = _surplus_indexes(job, active)
    kept = [pod for pod in active if pod not in surplus]
    parallelism = dig(job, "spec", "parallelism")
    wanted = 1 if parallelism is None else parallelism
    completions = dig(job, "spec", "completions")
    if completions is not None:
        wanted = min(wanted, max(0, completions - counts.all_succeeded))
    elif counts.all_succeeded:  # the queue is empty: who still works may finish
        wanted = min(wanted, len(kept))
    if len(kept) > wanted:
        return Change(delete=(*surplus, *first_to_go(kept)[: len(kept) - wanted]))
    missing = wanted - len(kept) - _count_awaited(job, pods)
    return Change(create=_new_pods(job, kept, counts, missing), delete=tuple(surplus))


def _count_awaited(job: Object, pods: Sequence[Object]) -> int:
    """Counts pods on their way out whose end the Job waits for before it replaces them."""
    if dig(job, "spec", "podReplacementPolicy") != "Failed":
        return 0
    return sum(map(is_terminating, pods))


def _surplus_indexes(job: Object, active: Sequence[Object]) -> list[Object]:
    if not is_indexed(job):
        return []
    limit = dig(job, "spec", "completions") or 0
    taken: set[int] = set()
    surplus = []
    for pod in active:
        index = index_of(pod)
        if index is None or index >= limit or index in taken:
            surplus.append(pod)
        else:
            taken.add(index)
    return surplus


def _new_pods(job: Object, active: Sequence[Object], counts: Tally, number: int) -> tuple[Object, ...]:
    number = max(0, min(number, BURST))  # of billions no more than are made at a time
    if not is_indexed(job):
        return tuple(_pod(job) for _ in range(number))
    taken = counts.completed | {index_of(pod) for pod in active}
    free = (index for index in range(dig(job, "spec", "completions") or 0) if index not in taken)
    return tuple(_indexed_pod(job, index) for index in islice(free, number))


def _pod(job: Object) -> Object:
    pod = pod_of(job, JOBS, job["spec"]["template"])
    pod["metadata"]["finalizers"] = [*pod["metadata"]["finalizers"], FINALIZER]
    return pod


def _indexed_pod(job: Object, index: int) -> Object:
    pod = _pod(job)
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["generateName"] = f"{name_of(job)}-{index}-"
    metadata["annotations"] = {**metadata["annotations"], INDEX: str(index)}
    metadata["labels"] = {**labels_of(pod), INDEX: str(index)}
    spec["hostname"] = f"{name_of(job)}-{index}"
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX}']"}}
    for kind in ("initContainers", "containers"):
        for container in spec.get(kind) or ():
            env = container.get("env") or []
            if all(each["name"] != "JOB_COMPLETION_INDEX" for each in env):
                container["env"] = [*env, {"name": "JOB_COMPLETION_INDEX", "valueFrom": deep_copy(source)}]
    return pod


def seconds_to_retry(job: Object, pods: Sequence[Object], now: datetime) -> float:
    """Returns how long to wait before a pod is replaced: longer with each that failed since the last success."""
    last_success = max((ended_at(pod, now) for pod in pods if dig(pod, "status", "phase") == "Succeeded"), default=None)
    failures = sorted(ended_at(pod, now) for pod in pods if has_failed(job, pod) and not is_being_deleted(pod))
    recent = [moment for moment in failures if last_success is None or moment > last_success]
    if not recent:
        return 0.0
    delay = min(2.0 ** (len(recent) - 1), _LONGEST_DELAY)
    return max(0.0, delay - (now - recent[-1]).total_seconds())


def ended_at(pod: Object, now: datetime) -> datetime:
    statuses = dig(pod, "status", "containerStatuses") or ()
    ends = [text for each in statuses if (text := dig(each, "state", "terminated", "finishedAt"))]
    return max(map(parse_timestamp, ends), default=now)

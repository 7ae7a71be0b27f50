"""What a LeaderWorkerSet does next about its pods: start, replace or remove whole groups, or single workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Final, TypeAlias

from isvc.kube.objects import Object, annotations_of, dig, is_being_deleted, labels_of
from isvc.kube.pods import container_statuses, replicas_of
from isvc.kube.timestamps import parse_timestamp
from isvc.local.controllers.leader_worker_sets.pods import COMPLETE, REVISION, Place, leader_size, revision_of
from isvc.local.controllers.pods import has_ended, is_active, is_ready
from isvc.local.controllers.rollout import share

Pods: TypeAlias = Mapping[Place, Object]

MIN_AGE: Final = timedelta(seconds=10)  # of a group that crashes, lest it is replaced as fast as this machine can


@dataclass(frozen=True, slots=True)
class Step:
    """What to do now; the pods' events bring the next step."""

    create: Sequence[Place] = ()
    delete: Sequence[Object] = ()


@dataclass(frozen=True, slots=True)
class Groups:
    """How many of a set's groups there are, are ready, and, of those that stay, are of its current templates."""

    replicas: int
    ready: int
    updated: int


def next_step(worker_set: Object, pods: Pods, now: datetime) -> Step:
    """Starts all groups at once; an update replaces one after the other, the last one first."""
    wanted = [*range(replicas_of(worker_set)), *_surge(worker_set, pods)]
    surplus = [pod for place, pod in pods.items() if place.group not in wanted and is_active(pod)]
    steps = [_group_step(worker_set, number, _members(pods, number), now) for number in wanted]
    create = list(chain.from_iterable(step.create for step in steps))
    delete = [*surplus, *chain.from_iterable(step.delete for step in steps)]
    return Step(create, delete) if create or delete else _update(worker_set, pods)


def _group_step(worker_set: Object, number: int, members: Mapping[int, Object], now: datetime) -> Step:
    leader = members.get(0)
    if members and (leader is None or _has_to_restart(worker_set, members, now)):
        return Step(delete=[pod for pod in members.values() if not is_being_deleted(pod)])
    if leader is None:
        return Step(create=[Place(number, 0)])
    ended = [pod for pod in members.values() if has_ended(pod)]
    if dig(worker_set, "spec", "startupPolicy") == "LeaderReady" and not is_ready(leader):
        return Step(delete=ended)
    missing = [Place(number, worker) for worker in range(1, leader_size(leader)) if worker not in members]
    return Step(missing, ended)


def _has_to_restart(worker_set: Object, members: Mapping[int, Object], now: datetime) -> bool:
    """Returns whether a group has lost its leader or, unless its restart policy says otherwise, any other of its pods.

    A pod may be gone before anybody saw it end: of a group that was complete once, none may be missing.
    """
    if _restarts_together(worker_set):
        is_short = COMPLETE in annotations_of(members[0]) and not _is_complete(members)
        age = now - parse_timestamp(members[0]["metadata"]["creationTimestamp"])
        is_old = not timedelta() <= age < MIN_AGE  # also if the clock was set back
        return is_short or any(not is_active(pod) or (is_old and _has_restarted(pod)) for pod in members.values())
    return not is_active(members[0])


def will_restart(worker_set: Object, pods: Pods) -> bool:
    """Returns whether a group has to restart that is too young for it."""
    return _restarts_together(worker_set) and any(is_active(pod) and _has_restarted(pod) for pod in pods.values())


def _restarts_together(worker_set: Object) -> bool:
    policy = dig(worker_set, "spec", "leaderWorkerTemplate", "restartPolicy") or "RecreateGroupOnPodRestart"
    return str(policy).startswith("RecreateGroup")


def _update(worker_set: Object, pods: Pods) -> Step:
    """Replaces outdated groups, as many at a time as may be missing, down to the one that the partition protects.

    A group beyond the replicas that is ready stands in for one more.
    """
    replicas, unavailable = replicas_of(worker_set), _rolling_update(worker_set).get("maxUnavailable", 1)
    least = 0 if _max_surge(worker_set) else 1
    left = max(least, share(unavailable, replicas, up=False))
    left += sum(_is_group_ready(_members(pods, number)) for number in _surge(worker_set, pods))
    delete: list[Object] = []
    for number in reversed(range(partition_of(worker_set), replicas)):
        if left <= 0:
            break
        members = _members(pods, number)
        is_updated = _is_updated(worker_set, members)
        if not is_updated:
            delete += [pod for pod in members.values() if is_active(pod)]
        if not is_updated or not _is_group_ready(members):
            left -= 1
    return Step(delete=tuple(delete))


def _surge(worker_set: Object, pods: Pods) -> list[int]:
    """Returns the numbers of groups beyond the replicas: as many as an update still has to replace, up to maxSurge.

    They are of the current templates, and begin with an update that finds outdated groups.
    """
    replicas = replicas_of(worker_set)
    members = {number: _members(pods, number) for number in range(replicas + _max_surge(worker_set))}
    replaced = [members[number] for number in range(partition_of(worker_set), replicas)]
    beyond = [number for number in range(replicas, len(members)) if _is_updated(worker_set, members[number])]
    is_updating = any(not _is_updated(worker_set, each) for each in replaced) or any(members[each] for each in beyond)
    unfinished = sum(not _is_updated(worker_set, each) or not _is_group_ready(each) for each in replaced)
    return beyond[: unfinished if is_updating else 0]


def _max_surge(worker_set: Object) -> int:
    return share(_rolling_update(worker_set).get("maxSurge", 0), replicas_of(worker_set), up=True)


def _rolling_update(worker_set: Object) -> Object:
    rolling: Object = dig(worker_set, "spec", "rolloutStrategy", "rollingUpdateConfiguration") or {}
    return rolling


def partition_of(worker_set: Object) -> int:
    """Returns the number of the first group that an update replaces."""
    return int(_rolling_update(worker_set).get("partition") or 0)


def newly_complete(pods: Pods) -> list[Object]:
    """Returns the leaders all of whose workers are there, and which do not say so yet."""
    leaders = [(place, pod) for place, pod in pods.items() if place.worker == 0 and COMPLETE not in annotations_of(pod)]
    return [leader for place, leader in leaders if is_active(leader) and _is_complete(_members(pods, place.group))]


def groups(worker_set: Object, pods: Pods) -> Groups:
    replicas = replicas_of(worker_set)
    numbers = sorted({place.group for place in pods if place.worker == 0})
    found = [_members(pods, number) for number in numbers]
    return Groups(
        replicas=len(found),
        ready=sum(_is_group_ready(members) for members in found),
        updated=sum(_is_updated(worker_set, _members(pods, number)) for number in numbers if number < replicas),
    )


def _members(pods: Pods, number: int) -> dict[int, Object]:
    return {place.worker: pod for place, pod in sorted(pods.items()) if place.group == number}


def _is_complete(members: Mapping[int, Object]) -> bool:
    return 0 in members and len(members) >= leader_size(members[0])


def _is_group_ready(members: Mapping[int, Object]) -> bool:
    return _is_complete(members) and all(is_active(pod) and is_ready(pod) for pod in members.values())


def _is_updated(worker_set: Object, members: Mapping[int, Object]) -> bool:
    return all(labels_of(pod).get(REVISION) == revision_of(worker_set) for pod in members.values())


def _has_restarted(pod: Object) -> bool:
    return any(status.get("restartCount") for status in container_statuses(pod))

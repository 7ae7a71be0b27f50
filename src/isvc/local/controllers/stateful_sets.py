"""StatefulSet → Pods with names that last: one after the other, or all at once; updated from the last to the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from isvc.kube.errors import AlreadyExists
from isvc.kube.objects import Key, Object, deep_copy, dig, generation_of, labels_of, name_of, namespace_of, uid_of
from isvc.kube.pods import replicas_of
from isvc.kube.resource import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from isvc.local.controllers.adoption import claim, watch_adopted
from isvc.local.controllers.pod_writes import BURST, create_pod, delete_pod, pod_of
from isvc.local.controllers.pods import has_ended, is_active, is_available, is_ready, look_at_next_available
from isvc.local.controllers.revisions import HASH, current_revision, forget_revisions, revisions, template_of
from isvc.local.controllers.selection import ORPHANS
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch
from isvc.toolkit.reads import Read

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"


def controller(context: Context) -> Controller:
    watches = [
        Watch(STATEFUL_SETS),
        *watch_adopted(context.cache, PODS, STATEFUL_SETS),
        Watch(CONTROLLER_REVISIONS, to=OwnerOf(STATEFUL_SETS)),
    ]
    reads = [Read(PODS, indexers=ORPHANS)]
    return Controller(
        "statefulset", StatefulSets(context).reconcile, watches, workers=2, clock=context.clock, reads=reads
    )


class StatefulSets:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache

    async def reconcile(self, key: Key) -> Result | None:
        stateful_set = self._context.find(STATEFUL_SETS, key)
        if stateful_set is None:
            return None
        await claim(self._context, PODS, STATEFUL_SETS.typed(stateful_set))
        update = await current_revision(self._context, stateful_set, STATEFUL_SETS)
        current = self._current(stateful_set, update)
        now = self._context.clock.now()
        step = next_step(stateful_set, self._pods(stateful_set), name_of(update), now)
        for ordinal in step.create:
            revision = current if ordinal < _first(stateful_set) + _partition(stateful_set) else update
            await self._create(stateful_set, ordinal, revision)
        for pod in step.delete:
            message = f"Delete Pod {{}} in StatefulSet {name_of(stateful_set)} successful"
            await delete_pod(self._context, stateful_set, pod, message)
        pods = self._pods(stateful_set)
        status = stateful_set_status(stateful_set, pods, name_of(current), name_of(update), now)
        await self._context.write_status(STATEFUL_SETS, stateful_set, status)
        used = {labels_of(pod).get(HASH, "") for pod in pods.values()}
        await forget_revisions(
            self._context, stateful_set, used | {status["currentRevision"], status["updateRevision"]}
        )
        return look_at_next_available(pods.values(), stateful_set, now)

    def _pods(self, stateful_set: Object) -> dict[int, Object]:
        found = self._cache.by_index(PODS, OWNER, uid_of(stateful_set))
        return {number: pod for pod in found if (number := ordinal_of(stateful_set, pod)) is not None}

    def _current(self, stateful_set: Object, update: Object) -> Object:
        """Returns the revision before the update that is under way, if one is."""
        name = dig(stateful_set, "status", "currentRevision")
        return next((item for item in revisions(self._context, stateful_set) if name_of(item) == name), update)

    async def _create(self, stateful_set: Object, ordinal: int, revision: Object) -> None:
        for wanted in claims_of(stateful_set, ordinal):
            try:
                made = await self._context.client.create(PERSISTENT_VOLUME_CLAIMS, wanted)
            except AlreadyExists:
                continue
            words = f"create Claim {name_of(made)} Pod {name_of(stateful_set)}-{ordinal} success"
            self._context.recorder.event(stateful_set, "Normal", "SuccessfulCreate", words)
        with suppress(AlreadyExists):  # one that is still going, which the cache has lost sight of, or another's
            message = f"Create Pod {{}} in StatefulSet {name_of(stateful_set)} successful"
            await create_pod(self._context, stateful_set, stateful_pod(stateful_set, ordinal, revision), message)


@dataclass(frozen=True, slots=True)
class Step:
    """What to do now; the pods' events bring the next step."""

    create: Sequence[int] = ()
    delete: Sequence[Object] = ()


def next_step(stateful_set: Object, pods: Mapping[int, Object], update: str, now: datetime) -> Step:
    """Chooses one pod at a time if ordered, each only when those before it are available; all at once if parallel.

    Looks at pods, and at no more numbers than pods are made at a time: replicas may be billions.
    """
    first = _first(stateful_set)
    wanted = range(first, first + replicas_of(stateful_set))
    ordered = dig(stateful_set, "spec", "podManagementPolicy") != "Parallel"
    missing = list(islice((number for number in wanted if number not in pods), BURST))
    ended = [pod for number, pod in sorted(pods.items()) if number in wanted and has_ended(pod)]
    surplus = [pods[number] for number in sorted(pods, reverse=True) if number not in wanted]
    if not ordered and (missing or ended or any(map(is_active, surplus))):
        return Step(missing, [*ended, *filter(is_active, surplus)])
    for number in wanted if ordered else ():
        pod = pods.get(number)
        if pod is None:
            return Step(create=[number])
        if has_ended(pod):
            return Step(delete=[pod])
        if not _is_available(stateful_set, pod, now):
            return Step()
    if surplus:
        return Step(delete=[pod for pod in surplus[:1] if is_active(pod)])
    return _update(stateful_set, pods, wanted, update, now)


def _update(stateful_set: Object, pods: Mapping[int, Object], wanted: range, update: str, now: datetime) -> Step:
    """Replaces the last pod first in a rolling update, and waits for it."""
    if dig(stateful_set, "spec", "updateStrategy", "type") == "OnDelete":
        return Step()
    for number in reversed(wanted):
        pod = pods.get(number)
        if pod is None or number < wanted.start + _partition(stateful_set):
            return Step()
        if labels_of(pod).get(HASH) != update:
            return Step(delete=[pod] if is_active(pod) else [])
        if not _is_available(stateful_set, pod, now):
            return Step()
    return Step()


def _first(stateful_set: Object) -> int:
    return int(dig(stateful_set, "spec", "ordinals", "start") or 0)


def _partition(stateful_set: Object) -> int:
    return int(dig(stateful_set, "spec", "updateStrategy", "rollingUpdate", "partition") or 0)


def _is_available(stateful_set: Object, pod: Object, now: datetime) -> bool:
    return is_active(pod) and is_available(pod, stateful_set, now)


def stateful_set_status(
    stateful_set: Object, pods: Mapping[int, Object], current: str, update: str, now: datetime
) -> Object:
    active = [pod for pod in pods.values() if is_active(pod)]

    def count_revision(revision: str) -> int:
        return sum(labels_of(pod).get(HASH) == revision for pod in active)

    replicas = replicas_of(stateful_set)
    settled = count_revision(update) == replicas == len(pods) and all(is_ready(pod) for pod in active)
    if settled:
        current = update
    counts = {
        "readyReplicas": sum(is_ready(pod) for pod in active),
        "currentReplicas": count_revision(current),
        "updatedReplicas": count_revision(update),
    }
    return {
        "observedGeneration": generation_of(stateful_set),
        "replicas": len(pods),
        "availableReplicas": sum(_is_available(stateful_set, pod, now) for pod in active),
        **{key: value for key, value in counts.items() if value},
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": 0,
    }


def ordinal_of(stateful_set: Object, pod: Object) -> int | None:
    prefix, _, number = name_of(pod).rpartition("-")
    return int(number) if prefix == name_of(stateful_set) and number.isdigit() else None


def stateful_pod(stateful_set: Object, ordinal: int, revision: Object) -> Object:
    pod = pod_of(stateful_set, STATEFUL_SETS, template_of(revision))
    name = f"{name_of(stateful_set)}-{ordinal}"
    metadata, spec = pod["metadata"], pod["spec"]
    del metadata["generateName"]
    metadata["name"] = name
    metadata["labels"] |= {POD_NAME: name, POD_INDEX: str(ordinal), HASH: name_of(revision)}
    spec["hostname"] = name
    if service := dig(stateful_set, "spec", "serviceName"):
        spec["subdomain"] = service
    claimed = [name_of(template) for template in _templates(stateful_set)]
    others = [volume for volume in spec.get("volumes") or () if volume["name"] not in claimed]
    own = [
        {"name": volume, "persistentVolumeClaim": {"claimName": _claim_name(stateful_set, volume, ordinal)}}
        for volume in claimed
    ]
    spec["volumes"] = [*others, *own]
    return pod


def claims_of(stateful_set: Object, ordinal: int) -> list[Object]:
    """Returns the claims of one pod, which outlive it."""
    labels = dig(stateful_set, "spec", "selector", "matchLabels") or {}
    claims = []
    for template in _templates(stateful_set):
        claim = deep_copy(template)
        metadata = claim["metadata"]
        metadata["name"] = _claim_name(stateful_set, metadata["name"], ordinal)
        metadata["namespace"] = namespace_of(stateful_set)
        metadata["labels"] = {**labels_of(claim), **labels}
        claims.append(PERSISTENT_VOLUME_CLAIMS.manifest(metadata, spec=claim["spec"]))
    return claims


def _templates(stateful_set: Object) -> list[Object]:
    return dig(stateful_set, "spec", "volumeClaimTemplates") or []


def _claim_name(stateful_set: Object, volume: str, ordinal: int) -> str:
    return f"{volume}-{name_of(stateful_set)}-{ordinal}"

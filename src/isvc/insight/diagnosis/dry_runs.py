"""Asks the API server what it would make of children and pods, without changing anything.

It knows what no plan does: quotas, policies, and what webhooks put into pods.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import orjson

from isvc.api.annotations import DISABLE_AUTO_UPDATE
from isvc.engine.comparison import Comparison
from isvc.engine.plan import Child
from isvc.insight.diagnosis.evidence import Outdated, last_written
from isvc.insight.diagnosis.snapshot import OWNED, Snapshot
from isvc.kube.equality import changed_fields
from isvc.kube.errors import AlreadyExists, ApiError
from isvc.kube.objects import Object, dig, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_of, controller_ref
from isvc.kube.resource import PODS, REPLICA_SETS, Resource
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, SystemClock
from isvc.wire.bounded import Expiring

MOST_REMEMBERED: Final = 1000
_COMPARED_OF_CONTAINERS = ("image", "command", "args", "env")
#: Annotations that change nothing: the Deployment controller's, and one that is for ourselves.
_UNIMPORTANT = ("deployment.kubernetes.io/revision", DISABLE_AUTO_UPDATE)


class DryRuns:
    """Writes that the API server only imagines. With `remember`, what it made of one is asked for once in that time.

    What it refused is asked for every time: a quota may have been raised since.
    """

    def __init__(self, client: Client, clock: Clock | None = None, remember: float = 0.0) -> None:
        self.field_manager = client.field_manager
        self._client, self._remember = client, remember
        #: By the digest of the question.
        self._made: Expiring[bytes, Object] = Expiring(MOST_REMEMBERED, (clock or SystemClock()).monotonic)

    async def create(self, resource: Resource, obj: Object) -> Object:
        return await self._ask(b"create", resource, obj, self._client.create)

    async def update(self, resource: Resource, obj: Object) -> Object:
        return await self._ask(b"update", resource, obj, self._client.update)

    async def _ask(self, verb: bytes, resource: Resource, obj: Object, ask: Callable[..., Awaitable[Object]]) -> Object:
        key = hashlib.sha256(b"\0".join((verb, str(resource).encode(), orjson.dumps(obj)))).digest()
        if key in self._made:
            return self._made[key]
        made = await ask(resource, obj, dry_run=True)
        if self._remember:
            self._made.keep(key, made, self._remember)
        return made


async def refusals(dry_runs: DryRuns, snapshot: Snapshot, children: Sequence[Child]) -> dict[str, str]:
    """Returns what the API server says to children that are not there, by kind and name."""
    missing = [
        child
        for child in children
        if child.resource in OWNED and child.resource not in snapshot.unread and snapshot.live(child) is None
    ]
    said = await asyncio.gather(*(_refusal(dry_runs, child) for child in missing))
    return {
        f"{child.resource.kind} {name_of(child.manifest)}": message
        for child, message in zip(missing, said, strict=True)
        if message
    }


async def outdated_children(
    dry_runs: DryRuns, service: Object, snapshot: Snapshot, children: Sequence[Child]
) -> list[Outdated]:
    """Returns children that their controller would change if it looked at the service now."""
    there = ((child, snapshot.live(child)) for child in children if child.resource in OWNED)
    compared = (Comparison(child, live, dry_runs.field_manager) for child, live in there if live is not None)
    doubtful = [each for each in compared if each.drifted or not each.has_all_required]
    fields = await asyncio.gather(*(_fields_to_change(dry_runs, service, each) for each in doubtful))
    return [Outdated(each.live, changed) for each, changed in zip(doubtful, fields, strict=True) if changed]


async def outdated_pods(
    dry_runs: DryRuns, snapshot: Snapshot, pods: Sequence[Object], sources: Sequence[Object]
) -> list[Outdated]:
    """Returns one pod of each ReplicaSet that was made before a source was edited and would now be made differently."""
    sets = {uid_of(each): each for each in snapshot.objects.get(REPLICA_SETS, ())}
    newest: dict[str, Object] = {}
    for pod in pods:
        if any(last_written(source) >= last_written(pod) for source in sources):
            newest.setdefault(str((controller_of(pod) or {}).get("uid")), pod)
    found = [(pod, sets[uid]) for uid, pod in newest.items() if uid in sets]
    made = await asyncio.gather(*(_made_now(dry_runs, replica_set) for _, replica_set in found))
    pairs = ((pod, tuple(_differing(pod, new))) for (pod, _), new in zip(found, made, strict=True) if new)
    return [Outdated(pod, fields) for pod, fields in pairs if fields]


async def _refusal(dry_runs: DryRuns, child: Child) -> str:
    try:
        await dry_runs.create(child.resource, child.manifest)
    except AlreadyExists:
        return ""
    except ApiError as error:
        return "" if "cannot create resource" in error.message else error.message  # it is this user who may not
    return ""


async def _fields_to_change(dry_runs: DryRuns, service: Object, compared: Comparison) -> tuple[str, ...]:
    try:
        after = await dry_runs.update(compared.child.resource, compared.replacement(service))
    except ApiError:  # this user may not ask, or the child has just changed
        return ()
    return tuple(field for field in _changes(compared.live, after) if not field.endswith(_UNIMPORTANT))


def _changes(before: Object, after: Object) -> Iterator[str]:
    for key in sorted((before.keys() | after.keys()) - {"metadata", "status"}):
        yield from changed_fields(before.get(key), after.get(key), key)
    for key in ("labels", "annotations"):
        old, new = (obj["metadata"].get(key) or {} for obj in (before, after))
        yield from changed_fields(old, new, f"metadata.{key}")


async def _made_now(dry_runs: DryRuns, replica_set: Object) -> Object | None:
    template = dig(replica_set, "spec", "template") or {}
    metadata = {
        **(template.get("metadata") or {}),
        "generateName": f"{name_of(replica_set)}-",
        "namespace": namespace_of(replica_set),
        "ownerReferences": [controller_ref(replica_set)],
    }
    pod = PODS.manifest(metadata, spec=template.get("spec"))
    try:
        return await dry_runs.create(PODS, pod)
    except ApiError:  # this user may not ask, or a quota is used up
        return None


def _differing(pod: Object, made_now: Object) -> Iterator[str]:
    for field in ("initContainers", "containers"):
        yield from changed_fields(_containers(pod, field), _containers(made_now, field), field)


def _containers(pod: Object, field: str) -> list[Object]:
    return [
        {"name": each["name"], **{key: each.get(key) for key in _COMPARED_OF_CONTAINERS}}
        for each in dig(pod, "spec", field) or ()
    ]

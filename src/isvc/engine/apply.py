"""Turns a plan into writes: the only code that creates, updates and deletes children.

Children are applied in the order of the plan, and what comes after a refusal waits. Pruning comes last, so that a new
child is there before the old one goes, and only when nothing was refused. A child that is as it should be costs no
request: the engine remembers what the API server made of each manifest, and after a restart compares.

Labels and annotations are shared ground. Ours have to be there, those of others stay, and one that we set before and no
longer want goes: managedFields tell that we set it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

import orjson

from isvc.engine.drift import drifted
from isvc.engine.outcome import (
    ChildKey,
    Created,
    Deleted,
    Outcome,
    Refusal,
    Rejected,
    Result,
    Taken,
    Unchanged,
    Updated,
)
from isvc.engine.plan import Child, Hold, Part, Plan, Want
from isvc.kube.equality import covers
from isvc.kube.errors import AlreadyExists, BadRequest, Forbidden, Invalid, NotFound, TooLarge
from isvc.kube.objects import (
    Key,
    Object,
    deep_copy,
    dig,
    is_being_deleted,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from isvc.kube.owners import controller_of, controller_ref, is_controlled_by, is_left_by_namesake, owner_refs
from isvc.kube.resource import Resource
from isvc.toolkit.cache import OWNER, Reader
from isvc.toolkit.client import FIELD_MANAGER

REFUSALS = (Invalid, Forbidden, BadRequest, NotFound, TooLarge)
_SHARED = ("labels", "annotations")
_MOST_WITNESSES = 100_000  # a lost one costs a comparison
_FROM_LIVE = ("uid", "resourceVersion", "finalizers", "creationTimestamp", "deletionTimestamp")


class Writer(Protocol):
    """What the engine needs of a client."""

    async def create(self, resource: Resource, obj: Object) -> Object: ...
    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...
    async def update(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object: ...
    async def delete(
        self, resource: Resource, name: str, namespace: str, *, uid: str | None, propagation: str | None
    ) -> Object: ...


class Memory(Reader, Protocol):
    """A reader that can be told of our own writes, so that the next read sees them."""

    def note(self, resource: Resource, obj: Object) -> None: ...

    def keys(self, resource: Resource, index_name: str, value: str) -> Sequence[Key]:
        """As `by_index`, for whom the names are enough."""
        ...


class _Witness(NamedTuple):
    """What we asked for, what the API server made of it, and the version of the child that this was seen in."""

    wanted: int
    live: int
    version: str


class Engine:
    def __init__(self, client: Writer, memory: Memory) -> None:
        self._client = client
        self._memory = memory
        self._witnesses: dict[tuple[Resource, str, str], _Witness] = {}

    async def apply(self, owner: Object, plan: Plan) -> Outcome:
        outcome = Outcome()
        for part in plan.parts:
            if isinstance(part.answer, Want):
                for child in part.answer.children:
                    key = ChildKey(child.resource, name_of(child.manifest))
                    result = outcome.results[key] = await self._settle(owner, child)
                    if isinstance(result, Rejected | Taken):
                        outcome.refusal = Refusal(part.name, key, result)
                        return outcome
        for part in plan.parts:
            if not isinstance(part.answer, Hold):
                await self._prune(owner, part, plan, outcome)
        return outcome

    # -- one child --------------------------------------------------------------------------------------------------

    async def _settle(self, owner: Object, child: Child) -> Result:
        manifest = child.manifest
        name, namespace = name_of(manifest), namespace_of(manifest)
        live = self._memory.get(child.resource, name, namespace)
        try:
            if live is None:
                live = await self._missed(child)
            if live is None:
                known = _place(child) in self._witnesses
                try:
                    return Created(await self._create(owner, child), repaired=known)
                except AlreadyExists:  # the cache lags behind, or does not hold this child
                    live = await self._client.get(child.resource, name, namespace)
            inherited = child.owned and is_left_by_namesake(live, owner)
            if child.owned and not inherited and not is_controlled_by(live, uid_of(owner)):
                return Taken(_taken(child.resource, live))
            try:
                return await (self._inherit if inherited else self._update)(owner, child, live)
            except NotFound:  # deleted a moment ago
                return Created(await self._create(owner, child), repaired=True)
        except REFUSALS as error:
            return Rejected(error)

    async def _missed(self, child: Child) -> Object | None:
        """A child that we wrote once and the cache does not show: it may be gone, or not be mirrored at all."""
        if _place(child) not in self._witnesses:
            return None
        try:
            return await self._client.get(child.resource, name_of(child.manifest), namespace_of(child.manifest))
        except NotFound:
            return None

    async def _create(self, owner: Object, child: Child) -> Object:
        body = {**child.manifest, "metadata": {**child.manifest["metadata"]}}
        if child.owned:
            body["metadata"]["ownerReferences"] = [controller_ref(owner)]
        live = await self._client.create(child.resource, body)
        self._remember(child, live)
        return live

    async def _update(self, owner: Object, child: Child, live: Object) -> Result:
        place, version, wanted = _place(child), resource_version_of(live), _wanted(child)
        witness = self._witnesses.get(place)
        if witness is None and await self._comes_to_the_same(owner, child, live):
            self._witnesses[place] = _Witness(wanted, _made(child, live), version)
            return Unchanged(live)
        if witness is not None and witness.wanted != wanted:
            witness = None  # it saw another manifest
        if witness is not None and witness.version == version:
            return Unchanged(live)
        made = _made(child, live)
        if _has_all(child, live) and ((witness and witness.live == made) or not _has_more(child, live)):
            self._witnesses[place] = _Witness(wanted, made, version)
            return Unchanged(live)
        updated = await self._client.update(child.resource, _replacement(owner, child, live))
        self._remember(child, updated)
        return Updated(updated, repaired=witness is not None)

    async def _inherit(self, owner: Object, child: Child, live: Object) -> Result:
        """Adopt a child of an owner that was deleted and created anew, before the garbage collector comes for it.

        It counts as repaired: what was observed of this owner's children did not have it yet.
        """
        kept = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
        metadata = {**kept, "ownerReferences": _owners(owner, child, live)}
        adopted = await self._client.update(child.resource, {**live, "metadata": metadata})
        self._memory.note(child.resource, adopted)
        result = await self._update(owner, child, adopted)
        return Updated(result.live, repaired=True) if isinstance(result, Updated | Unchanged) else result

    async def _comes_to_the_same(self, owner: Object, child: Child, live: Object) -> bool:
        """Of a child that we do not remember: whether an update would change nothing.

        It may have more than we ask for because a webhook added it, or because we asked for it before a restart. Only
        the API server can tell, by a dry run.
        """
        if not _has_all(child, live):
            return False
        if not _has_more(child, live):
            return True
        if _left_over(child, live) or not covers(_compared(child, live), _compared(child, child.manifest)):
            return False  # it certainly would
        answer = await self._client.update(child.resource, _replacement(owner, child, live), dry_run=True)
        return _made(child, answer) == _made(child, live)

    def _remember(self, child: Child, live: Object) -> None:
        self._memory.note(child.resource, live)
        self._witnesses[_place(child)] = _Witness(_wanted(child), _made(child, live), resource_version_of(live))
        if len(self._witnesses) > _MOST_WITNESSES:
            del self._witnesses[next(iter(self._witnesses))]

    # -- what should not be there -----------------------------------------------------------------------------------

    async def _prune(self, owner: Object, part: Part, plan: Plan, outcome: Outcome) -> None:
        for resource in sorted(part.kinds):
            if not self._memory.serves(resource):
                continue
            for namespace, name in self._memory.keys(resource, OWNER, uid_of(owner)):
                if not part.covers(resource, name) or plan.wants(resource, name) or plan.holds(resource, name):
                    continue
                live = self._memory.get(resource, name, namespace)
                if live and namespace == namespace_of(owner) and not is_being_deleted(live):
                    outcome.results[ChildKey(resource, name)] = await self._delete(resource, live)

    async def _delete(self, resource: Resource, live: Object) -> Result:
        name, namespace = name_of(live), namespace_of(live)
        self._witnesses.pop((resource, namespace, name), None)
        try:
            await self._client.delete(resource, name, namespace, uid=uid_of(live), propagation="Background")
        except NotFound:
            pass
        except (Forbidden, Invalid) as error:
            return Rejected(error)
        return Deleted()


def _place(child: Child) -> tuple[Resource, str, str]:
    return child.resource, namespace_of(child.manifest), name_of(child.manifest)


def _taken(resource: Resource, live: Object) -> str:
    ref = controller_of(live)
    whose = f"it belongs to {ref.get('kind')} {ref.get('name')}" if ref else "it was not created for this service"
    return f"{resource.kind} {name_of(live)} exists already and {whose}: rename or delete it"


def _compared(child: Child, obj: Object) -> Object:
    """The parts of an object that decide whether an update is due, without the fields that are ignored."""
    paths = child.policy.compare
    if paths is None:
        paths = tuple(key for key in child.manifest if key not in ("apiVersion", "kind", "metadata", "status"))
    parts = {path.rpartition(".")[2]: _at(obj, path) for path in paths}
    for path in child.policy.ignore:
        top, *rest = _steps(path)
        if top in parts:
            parts[top] = _without(parts[top], rest)
    return parts


def _left_over(child: Child, live: Object) -> set[tuple[str, str]]:
    """Labels and annotations that we set once and no longer want, where that makes an update due."""
    return {
        (name, key)
        for name in _SHARED
        if child.policy.withdraws(f"metadata.{name}")
        for key in _set_by_us(live, name) - (child.manifest["metadata"].get(name) or {}).keys()
    }


def _set_by_us(live: Object, name: str) -> set[str]:
    """The keys of labels or annotations that our field manager set, of those that are there."""
    present = live["metadata"].get(name) or {}
    claimed: set[str] = set()
    for entry in live["metadata"].get("managedFields") or ():
        if entry.get("manager") == FIELD_MANAGER:
            claimed |= (dig(entry, "fieldsV1", "f:metadata", f"f:{name}") or {}).keys()
    return {key for key in present if f"f:{key}" in claimed}


def _at(obj: Object, path: str) -> Any:
    return dig(obj, *_steps(path))


@cache
def _steps(path: str) -> tuple[str, ...]:
    fields, _, key = path.partition("[")
    return (*fields.split("."), key.removesuffix("]")) if key else tuple(fields.split("."))


def _without(value: Any, steps: Sequence[str]) -> Any:
    """The value without what the steps lead to; what is not on the way there is shared."""
    if not steps:
        return None
    if not isinstance(value, dict):
        return value
    step, *rest = steps
    trimmed = {key: inner for key, inner in value.items() if key != step}
    if rest and step in value:
        trimmed[step] = _without(value[step], rest)
    return trimmed


def _replacement(owner: Object, child: Child, live: Object) -> Object:
    """The manifest as an update: with the live object's identity, and with what others may own as it is."""
    body = deep_copy(child.manifest)
    metadata = body["metadata"]
    metadata |= {key: live["metadata"][key] for key in _FROM_LIVE if live["metadata"].get(key)}
    for name in _SHARED:
        if shared := {**_others(child, live, name), **(metadata.get(name) or {})}:
            metadata[name] = shared
    if references := _owners(owner, child, live):
        metadata["ownerReferences"] = references
    for path in child.policy.ignore:
        if (value := _at(live, path)) is not None:
            *parents, last = _steps(path)
            target = body
            for step in parents:
                target = target.setdefault(step, {})
            target[last] = value
    return body


def _owners(owner: Object, child: Child, live: Object) -> list[Object]:
    others = [ref for ref in owner_refs(live) if not (child.owned and ref.get("controller"))]
    return [controller_ref(owner), *others] if child.owned else others


def _others(child: Child, live: Object, name: str) -> Object:
    """Labels or annotations of others that stay: all where the policy retains them, else notes of Kubernetes itself."""
    present: Object = live["metadata"].get(name) or {}
    ours, shared = _set_by_us(live, name), child.policy.retains(f"metadata.{name}")
    return {
        key: value
        for key, value in present.items()
        if key not in ours and (shared or key.partition("/")[0].endswith("kubernetes.io"))
    }


def _has_all(child: Child, live: Object) -> bool:
    return all(covers(_at(live, path) or {}, _at(child.manifest, path) or {}) for path in child.policy.required)


def _has_more(child: Child, live: Object) -> bool:
    """Whether it has something that neither the manifest nor the API server put there, or lacks something compared."""
    return drifted(_compared(child, live), _compared(child, child.manifest)) or bool(_left_over(child, live))


def _wanted(child: Child) -> int:
    return _digest([_compared(child, child.manifest), [_at(child.manifest, path) for path in child.policy.required]])


def _made(child: Child, live: Object) -> int:
    return _digest([_compared(child, live), sorted(_left_over(child, live))])


def _digest(value: Any) -> int:
    return hash(orjson.dumps(value, option=orjson.OPT_SORT_KEYS))

"""Turns a plan into writes: the only code that creates, updates and deletes children.

Children are applied in the order of the plan, and what comes after a refusal waits, unless that part is independent.
Pruning comes last, so that a new child is there before the old one goes, and never for a refused part. A child that is
as it should be costs no request: the engine remembers what the API server made of each manifest, and after a restart
compares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from isvc.engine.comparison import Comparison, Wanted, digest, fingerprint_of, owners
from isvc.engine.outcome import Created, Deleted, Outcome, Refusal, Rejected, Result, Taken, Unchanged, Updated
from isvc.engine.plan import Child, ChildKey, Edit, Hold, Part, Plan, Want
from isvc.kube.equality import covers
from isvc.kube.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, NotFound, TooLarge
from isvc.kube.objects import (
    Object,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from isvc.kube.owners import controller_of, controller_ref, is_controlled_by, is_left_by_namesake
from isvc.kube.resource import Resource
from isvc.toolkit.cache import OWNER, Memory
from isvc.wire.bounded import Bounded

REFUSALS = (Invalid, Forbidden, BadRequest, NotFound, TooLarge)
_MOST_REMEMBERED = 100_000  # one that is forgotten costs a comparison
_MOST_CONFLICTS = 5  # of others who edit the same object; then the backoff of the reconcile lets them pass


class Writer(Protocol):
    """What the engine needs of a client."""

    @property
    def field_manager(self) -> str: ...

    async def create(self, resource: Resource, obj: Object) -> Object: ...
    async def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None: ...
    async def update(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object: ...
    async def patch(self, resource: Resource, name: str, patch: object, namespace: str = "") -> Object: ...
    async def delete(
        self, resource: Resource, name: str, namespace: str, *, uid: str | None, propagation: str | None
    ) -> Object: ...


class _Seen(NamedTuple):
    """What we asked for, what the API server made of it, and the version of the child that this was seen in."""

    wanted: Wanted
    live: int
    version: str


class Engine:
    def __init__(self, client: Writer, memory: Memory) -> None:
        self._client = client
        self._memory = memory
        self._seen: dict[ChildKey, _Seen] = {}
        self._edits: Bounded[tuple[str, ChildKey], int] = Bounded(_MOST_REMEMBERED)  # what owners asked for last
        self._has_filled = False

    async def apply(self, owner: Object, plan: Plan) -> Outcome:
        outcome, applied = Outcome(namespace=namespace_of(owner)), list[Part]()
        for part in plan.parts:
            refusal = await self._settle_part(owner, part, outcome)
            outcome.refusal = outcome.refusal or refusal
            if refusal is None:
                applied.append(part)
            elif not part.independent:
                break
        outcome.refusal = outcome.refusal or await self._settle_again(owner, applied, outcome)
        surplus = self._surplus(owner, [part for part in applied if not isinstance(part.answer, Hold)], plan)
        for key, live in surplus:
            outcome.results[key] = await self._delete(key, live)
        return outcome

    async def _settle_part(self, owner: Object, part: Part, outcome: Outcome) -> Refusal | None:
        """Applies the children and edits of a part up to the first that is refused."""
        if not isinstance(part.answer, Want):
            return None
        for child in part.answer.children:
            result = outcome.results[child.key] = await self._settle(owner, await self._fill(child))
            if isinstance(result, Rejected | Taken):
                return Refusal(part.name, child.key, result)
        for edit in part.answer.edits:
            edited = await self._edit(owner, edit)
            if edited is not None:
                outcome.results[edit.key] = edited
            if isinstance(edited, Rejected):
                return Refusal(part.name, edit.key, edited)
        return None

    async def _settle_again(self, owner: Object, parts: Iterable[Part], outcome: Outcome) -> Refusal | None:
        """Applies the children once more that name what others were given which were just created."""
        for part in parts:
            for child in part.answer.children if isinstance(part.answer, Want) else ():
                if child.late is None:
                    continue
                results = [outcome.results.get(key) for key in child.late.others]
                if created := [result.live for result in results if isinstance(result, Created)]:
                    result = outcome.completed[child.key] = await self._settle(owner, await self._fill(child, created))
                    if isinstance(result, Rejected | Taken):
                        return Refusal(part.name, child.key, result)
        return None

    # -- one child --------------------------------------------------------------------------------------------------

    async def _settle(self, owner: Object, child: Child) -> Result:
        live = self._memory.get(*child.key)
        try:
            if live is None:
                live = await self._find_missed(child)
            if live is None:
                known = child.key in self._seen
                try:
                    return Created(await self._create(owner, child), repaired=known)
                except AlreadyExists:  # the cache lags behind, or does not hold this child
                    live = await self._client.find(*child.key)
                    if live is None:  # gone again
                        raise
            if is_taken(owner, child, live):
                return Taken(whose(child.resource, live))
            try:
                return await (self._inherit if lacks_owner(owner, child, live) else self._update)(owner, child, live)
            except NotFound:  # deleted a moment ago
                return Created(await self._create(owner, child), repaired=True)
        except REFUSALS as error:
            return Rejected(error)

    async def _fill(self, child: Child, others: Sequence[Object] = ()) -> Child:
        """Returns the child with all its fields: the first time in a thread, for it may import what makes them."""
        if child.late is None or self._has_filled:
            return child.fill(others)
        filled = await asyncio.to_thread(child.fill, others)
        self._has_filled = True
        return filled

    async def _find_missed(self, child: Child) -> Object | None:
        """Returns a child that we wrote once and the cache does not show: it may be gone, or not be mirrored at all."""
        return await self._client.find(*child.key) if child.key in self._seen else None

    async def _create(self, owner: Object, child: Child) -> Object:
        body = {**child.manifest, "metadata": {**child.manifest["metadata"]}}
        if child.owned:
            body["metadata"]["ownerReferences"] = [controller_ref(owner)]
        live = await self._client.create(child.resource, body)
        self._remember(owner, child, live)
        return live

    async def _update(self, owner: Object, child: Child, live: Object) -> Result:
        key, version, wanted = child.key, resource_version_of(live), fingerprint_of(child)
        compared, seen = Comparison(child, live, self._client.field_manager), self._seen.get(key)
        if seen is not None and (seen.wanted, seen.version) == (wanted, version):
            return Unchanged(live)
        if await self._is_settled(owner, compared, wanted, seen):
            self._seen[key] = _Seen(wanted, compared.fingerprint, version)
            return Unchanged(live)
        updated = await self._client.update(child.resource, compared.replacement(owner))
        if resource_version_of(updated) == version:  # which somebody else wrote
            self._remember(None, child, updated)
            return Unchanged(updated)
        self._remember(owner, child, updated)
        return Updated(updated, repaired=seen is not None and seen.wanted == wanted)

    async def _is_settled(self, owner: Object, compared: Comparison, wanted: Wanted, seen: _Seen | None) -> bool:
        """Returns whether an update of the child would change nothing, as far as can be said without asking for it."""
        if seen is None:
            return await self._is_unchanged(owner, compared)
        if seen.wanted.compared != wanted.compared and seen.version == resource_version_of(compared.live):
            return False  # it is what the API server made of another manifest
        if not compared.has_all_required:
            return False
        return (seen.wanted == wanted and seen.live == compared.fingerprint) or not compared.drifted

    async def _inherit(self, owner: Object, child: Child, live: Object) -> Result:
        """Adopts a child of an owner that was deleted and created anew.

        It counts as repaired: what was observed of this owner's children did not have it yet.
        """
        kept = {key: value for key, value in live["metadata"].items() if key != "managedFields"}
        metadata = {**kept, "ownerReferences": owners(owner, child, live)}
        adopted = await self._client.update(child.resource, {**live, "metadata": metadata})
        self._memory.note(child.resource, adopted, owner=owner)
        result = await self._update(owner, child, adopted)
        return Updated(result.live, repaired=True) if isinstance(result, Updated | Unchanged) else result

    async def _is_unchanged(self, owner: Object, compared: Comparison) -> bool:
        """Returns whether an update of a child that we do not remember would change nothing.

        It may have more than we ask for because a webhook added it, or because we asked for it before a restart. Only
        the API server knows, and a dry run asks it.
        """
        if not compared.has_all_required:
            return False
        if not compared.drifted:
            return True
        if compared.leftovers or not compared.has_all_compared:
            return False
        answer = await self._client.update(compared.child.resource, compared.replacement(owner), dry_run=True)
        return replace(compared, live=answer).fingerprint == compared.fingerprint

    def _remember(self, owner: Object | None, child: Child, live: Object) -> None:
        self._memory.note(child.resource, live, owner=owner)
        made = Comparison(child, live, self._client.field_manager).fingerprint
        self._seen[child.key] = _Seen(fingerprint_of(child), made, resource_version_of(live))
        if len(self._seen) > _MOST_REMEMBERED:
            del self._seen[next(iter(self._seen))]

    # -- entries in objects of several owners -----------------------------------------------------------------------

    async def _edit(self, owner: Object, edit: Edit) -> Created | Updated | Unchanged | Rejected | None:
        """Asks for the change that is lacking, and again on the newest version when somebody else was faster."""
        (resource, name, namespace), live = edit.key, edit.live
        for attempt in range(_MOST_CONFLICTS):
            change = edit.change(live)
            if change is None:
                return None if live is None else Unchanged(live)
            try:
                if live is None:
                    written: Object = await self._client.create(resource, change)
                else:
                    metadata = {**(change.get("metadata") or {}), "resourceVersion": resource_version_of(live)}
                    written = await self._client.patch(resource, name, {**change, "metadata": metadata}, namespace)
            except (Conflict, AlreadyExists):
                if attempt + 1 == _MOST_CONFLICTS:
                    raise
                live = await self._client.find(resource, name, namespace)
            except NotFound:
                live = None
            except REFUSALS as error:
                return Rejected(error)
            else:
                self._memory.note(resource, written, owner=owner)
                repaired = self._is_repeated(owner, edit, change)
                return Created(written, repaired=repaired) if live is None else Updated(written, repaired=repaired)
        return None

    def _is_repeated(self, owner: Object, edit: Edit, change: Object) -> bool:
        """Notes a change that was made; returns whether the last one was the same, so that somebody has undone it."""
        key, made = (uid_of(owner), edit.key), digest(change)
        before = self._edits.get(key)
        self._edits[key] = made
        return before == made

    # -- what should not be there -----------------------------------------------------------------------------------

    def _surplus(self, owner: Object, parts: Sequence[Part], plan: Plan) -> Iterator[tuple[ChildKey, Object]]:
        """Yields children of the owner that a part covers and nobody wants, part by part."""
        wanted = plan.wanted_keys()
        kinds = frozenset[Resource]().union(*(part.kinds for part in parts))
        unwanted = {key for key in self._children_of(owner, kinds) if key not in wanted}
        for part in parts:
            covered = {key for key in unwanted if part.covers(key)}
            unwanted -= covered
            for key in sorted(covered):
                live = self._memory.get(*key)
                if live is not None and _may_go(key, live, plan):
                    yield key, live
            for resource, live in part.found:
                key = ChildKey(resource, name_of(live), namespace_of(live))
                if key not in wanted and _may_go(key, live, plan):
                    yield key, live

    def _children_of(self, owner: Object, kinds: Iterable[Resource]) -> Iterator[ChildKey]:
        """Yields children of these kinds. An owner in a namespace has them there alone, one of the cluster in any."""
        uid, home = uid_of(owner), namespace_of(owner)
        for resource in sorted(kinds):
            if self._memory.serves(resource):
                for namespace, name in self._memory.keys(resource, OWNER, uid):
                    if home in ("", namespace):
                        yield ChildKey(resource, name, namespace)

    async def _delete(self, key: ChildKey, live: Object) -> Result:
        self._seen.pop(key, None)
        try:
            await self._client.delete(*key, uid=uid_of(live), propagation="Background")
        except NotFound:
            pass
        except (Forbidden, Invalid) as error:
            return Rejected(error)
        return Deleted()


def _may_go(key: ChildKey, live: Object, plan: Plan) -> bool:
    """Returns whether an object that nobody wants may be deleted: no part holds it, and nobody was faster."""
    return not plan.holds(key) and not is_being_deleted(live)


def is_taken(owner: Object, child: Child, live: Object) -> bool:
    """Returns whether somebody else's object has the name of the child."""
    if child.labels is not None:
        return not child.labels.items() <= labels_of(live).items()
    return lacks_owner(owner, child, live) and not (is_left_by_namesake(live, owner) or is_orphaned(child, live))


def lacks_owner(owner: Object, child: Child, live: Object) -> bool:
    """Returns whether the owner should control the object and does not."""
    return child.owned and not is_controlled_by(live, uid_of(owner))


def is_orphaned(child: Child, live: Object) -> bool:
    """Returns whether nobody controls an object that is like the child: `kubectl delete --cascade=orphan` leaves such.

    It has the child's labels or, where the child has none, all that it asks for.
    """
    if controller_of(live) is not None:
        return False
    if labels := labels_of(child.manifest):
        return labels.items() <= labels_of(live).items()
    return covers(live, {key: value for key, value in child.manifest.items() if key != "metadata"})


def whose(resource: Resource, live: Object) -> str:
    """Says whose object it is that has the name of a child."""
    ref = controller_of(live)
    owner = f"it belongs to {ref.get('kind')} {ref.get('name')}" if ref else "it was not created for this service"
    return f"{resource.kind} {name_of(live)} exists already and {owner}: rename or delete it"

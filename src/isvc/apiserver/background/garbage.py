"""Garbage collection: what lost its owners goes too.

The graph holds every object with an owner, and every owner. Objects are looked at again when they, an owner or a
dependent change:
- all owners gone (or going in the foreground): deleted; only some gone: those references are removed;
- marked `foregroundDeletion`: waits for the dependents that block it, then loses the mark;
- marked `orphan`: dependents lose their reference, then it loses the mark.
"""

from __future__ import annotations

from typing import Any

from isvc.apiserver.background.follower import Follower
from isvc.apiserver.store.entry import DELETED, Entry, Event, Lifetime
from isvc.apiserver.verbs.delete import FOREGROUND, ORPHAN
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.objects import Object

# There may be thousands of them, owned by nobody, and never owners.
LEFT_OUT = ("events",)


class Node:
    """One object in the graph."""

    __slots__ = ("deleting", "entry", "finalizers", "owners")

    def __init__(self, entry: Entry, lifetime: Lifetime) -> None:
        self.entry = entry
        self.owners: list[Object] = lifetime.owner_references or []
        self.finalizers: list[str] = lifetime.finalizers or []
        self.deleting = bool(lifetime.deletion_timestamp)

    def waits_for_dependents(self) -> bool:
        return self.deleting and FOREGROUND in self.finalizers


class GarbageCollector(Follower):
    def __init__(self, api: Api) -> None:
        super().__init__(api, "generic-garbage-collector")
        self._nodes: dict[str, Node] = {}
        self._dependents: dict[str, set[str]] = {}
        for collection in api.store.collections():
            for entry in api.store.list(collection):
                self._put(entry)

    # The graph

    def on_event(self, event: Event) -> None:
        if event.type == DELETED:
            self._remove(event.entry)
        else:
            self._put(event.entry)

    def _put(self, entry: Entry) -> None:
        if entry.collection in LEFT_OUT:
            return
        lifetime = entry.lifetime()
        uid = lifetime.uid
        before, node = self._nodes.get(uid), Node(entry, lifetime)
        self._nodes[uid] = node
        self._link(uid, before.owners if before else [], node.owners)
        if node.owners or node.deleting:
            self._worker.add(uid)
        if node.deleting and not (before and before.deleting):
            self._add_all(self._dependents.get(uid, ()))
        if before and before.owners != node.owners:
            self._add_all(owner["uid"] for owner in before.owners)

    def _remove(self, entry: Entry) -> None:
        if entry.collection in LEFT_OUT:
            return
        uid = entry.lifetime().uid
        node = self._nodes.pop(uid, None)
        if node:
            self._link(uid, node.owners, [])
            self._add_all(owner["uid"] for owner in node.owners)
        self._add_all(self._dependents.get(uid, ()))

    def _link(self, uid: str, before: list[Object], after: list[Object]) -> None:
        for owner in before:
            dependents = self._dependents.get(owner.get("uid", ""), set())
            dependents.discard(uid)
            if not dependents:
                self._dependents.pop(owner.get("uid", ""), None)
        for owner in after:
            self._dependents.setdefault(owner.get("uid", ""), set()).add(uid)

    def _add_all(self, uids: Any) -> None:
        for uid in tuple(uids):
            self._worker.add(uid)

    # The decisions

    async def work(self, uid: str) -> None:
        node = self._nodes.get(uid)
        if node is None:
            return
        if node.deleting and ORPHAN in node.finalizers:
            await self._orphan(uid, node)
        elif node.waits_for_dependents():
            await self._finish(uid, node)
        elif node.owners and not node.deleting:
            await self._check_owners(uid, node)

    async def _check_owners(self, uid: str, node: Node) -> None:
        solid, gone, waiting = self._sort_owners(node)
        if solid:
            if gone or waiting:
                lost = {owner["uid"] for owner in (*gone, *waiting)}
                await self._actor.change(node.entry, lambda live: _drop_owners(live, lost))
        elif waiting and self._dependents.get(uid):
            await self._actor.delete(node.entry, uid, "Foreground")
        else:
            policy = "Foreground" if FOREGROUND in node.finalizers else "Background"
            await self._actor.delete(node.entry, uid, "Orphan" if ORPHAN in node.finalizers else policy)

    def _sort_owners(self, node: Node) -> tuple[list[Object], list[Object], list[Object]]:
        """Returns the references that hold, that lead nowhere, and whose owner waits for its dependents to go."""
        solid, gone, waiting = [], [], []
        for owner in node.owners:
            found = self._nodes.get(owner.get("uid", ""))
            if found is None or found.entry.namespace not in ("", node.entry.namespace):
                gone.append(owner)
            elif found.waits_for_dependents():
                waiting.append(owner)
            else:
                solid.append(owner)
        return solid, gone, waiting

    async def _orphan(self, uid: str, node: Node) -> None:
        for dependent in tuple(self._dependents.get(uid, ())):
            if found := self._nodes.get(dependent):
                await self._actor.change(found.entry, lambda live: _drop_owners(live, {uid}))
        await self._actor.remove_finalizer(node.entry, ORPHAN)

    async def _finish(self, uid: str, node: Node) -> None:
        """Removes the foreground mark once nothing blocks any more."""
        dependents = {each: found for each in self._dependents.get(uid, ()) if (found := self._nodes.get(each))}
        self._add_all(dependents)
        owners = (owner for each in dependents.values() for owner in each.owners)
        if not any(owner.get("uid") == uid and owner.get("blockOwnerDeletion") for owner in owners):
            await self._actor.remove_finalizer(node.entry, FOREGROUND)


def _drop_owners(live: Object, uids: set[str]) -> None:
    meta = live["metadata"]
    meta["ownerReferences"] = [each for each in meta.get("ownerReferences") or () if each["uid"] not in uids]

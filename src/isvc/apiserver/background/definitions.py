"""What CustomResourceDefinitions wait for: the names of others, and at their end that their objects go first.

This is the server's own duty, not a controller's.
"""

from __future__ import annotations

from isvc.apiserver.background.follower import Follower
from isvc.apiserver.crd.acceptance import next_status
from isvc.apiserver.crd.claimed_names import DEFINITIONS, ClaimedNames
from isvc.apiserver.crd.definition import INSTANCES_FINALIZER
from isvc.apiserver.store.entry import Event, Lifetime
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.objects import Object


class DefinitionFinalizer(Follower):
    def __init__(self, api: Api) -> None:
        super().__init__(api, "apiextensions-apiserver")
        self._ending: set[str] = set()
        for entry in api.store.list(DEFINITIONS):
            self._note(entry.name, entry.lifetime())

    def on_event(self, event: Event) -> None:
        if event.entry.collection == DEFINITIONS:
            self._note(event.entry.name, event.entry.lifetime())
        elif event.entry.collection in self._ending:
            self._worker.add(event.entry.collection)

    def _note(self, name: str, lifetime: Lifetime) -> None:
        if lifetime.deletion_timestamp and INSTANCES_FINALIZER in (lifetime.finalizers or ()):
            self._ending.add(name)
            self._worker.add(name)
        else:
            self._ending.discard(name)

    async def work(self, name: str) -> None:
        """Deletes the objects of a definition, whose name is also that of their collection."""
        if name not in self._ending:  # a retry that comes late: this is another of the name
            return
        left = self._store.list(name)
        for entry in left:
            lifetime = entry.lifetime()
            if not lifetime.deletion_timestamp:
                await self._actor.delete(entry, lifetime.uid)
        definition = self._store.get(DEFINITIONS, "", name)
        if definition and not self._store.list(name):
            await self._actor.remove_finalizer(definition, INSTANCES_FINALIZER)


class NameAcceptance(Follower):
    """Definitions that have not got all of their names try again when another definition changes or goes."""

    def __init__(self, api: Api, names: ClaimedNames) -> None:
        super().__init__(api, "apiextensions-apiserver")
        self._names = names

    def on_event(self, event: Event) -> None:
        if event.entry.collection == DEFINITIONS:
            for name in self._names.waiting:
                self._worker.add(name)

    async def work(self, name: str) -> None:
        definition = self._store.get(DEFINITIONS, "", name)
        if definition:
            await self._actor.change(definition, self._settle, "status")

    def _settle(self, crd: Object) -> None:
        crd["status"] = next_status(crd, crd.get("status") or {}, self._names.names_of_others(crd))

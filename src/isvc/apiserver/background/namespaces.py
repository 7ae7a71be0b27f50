"""The end of a namespace: everything in it is deleted, and when the last object is gone so is the namespace."""

from __future__ import annotations

from isvc.apiserver.background.follower import Follower
from isvc.apiserver.store.entry import DELETED, Event
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.objects import Object

COLLECTION = "namespaces"
FINALIZER = "kubernetes"


class NamespaceFinalizer(Follower):
    def __init__(self, api: Api) -> None:
        super().__init__(api, "namespace-controller")
        self._ending: set[str] = set()
        for entry in api.store.list(COLLECTION):
            self._note(entry.name, entry.parse())

    def on_event(self, event: Event) -> None:
        entry = event.entry
        if entry.collection == COLLECTION:
            if event.type == DELETED:
                self._ending.discard(entry.name)
            else:
                self._note(entry.name, entry.parse())
        elif entry.namespace in self._ending:
            self._worker.add(entry.namespace)

    def _note(self, name: str, namespace: Object) -> None:
        if namespace["metadata"].get("deletionTimestamp"):
            self._ending.add(name)
            self._worker.add(name)

    async def work(self, name: str) -> None:
        left = False
        for collection in self._store.collections():
            for entry in self._store.list(collection, name):
                left = True
                meta = entry.parse()["metadata"]
                if not meta.get("deletionTimestamp"):
                    await self._actor.delete(entry, meta["uid"])
        namespace = self._store.get(COLLECTION, "", name)
        if namespace and not left:
            await self._actor.change(namespace, _release, "finalize")


def _release(namespace: Object) -> None:
    spec = namespace.setdefault("spec", {})
    spec["finalizers"] = [each for each in spec.get("finalizers") or () if each != FINALIZER]

"""What every namespace has from its beginning, and its end: all that is in it goes first."""

from __future__ import annotations

from isvc.apiserver.background.follower import Follower
from isvc.apiserver.store.entry import DELETED, Event
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.objects import Object, is_being_deleted
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS

COLLECTION = str(NAMESPACES)
FINALIZER = "kubernetes"
ACCOUNT = "default"
AUTHORITY = "kube-root-ca.crt"


class NamespaceAccounts(Follower):
    """Gives every namespace a ServiceAccount `default`, and a ConfigMap with the CA by which pods know this server."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, "serviceaccount-controller")
        self._data = {"ca.crt": api.identity.ca.read_text()}
        for entry in api.store.list(COLLECTION):
            self._worker.add(entry.name)

    def on_event(self, event: Event) -> None:
        entry = event.entry
        if entry.collection == COLLECTION:
            self._worker.add(entry.name)
        elif (entry.collection, entry.name) in ((str(SERVICE_ACCOUNTS), ACCOUNT), (str(CONFIG_MAPS), AUTHORITY)):
            self._worker.add(entry.namespace)

    async def work(self, name: str) -> None:
        namespace = self._store.get(COLLECTION, "", name)
        if namespace is None or is_being_deleted(namespace.parse()):
            return
        if self._store.get(str(SERVICE_ACCOUNTS), name, ACCOUNT) is None:
            await self._actor.create(SERVICE_ACCOUNTS, name, {"metadata": {"name": ACCOUNT}})
        authority = self._store.get(str(CONFIG_MAPS), name, AUTHORITY)
        if authority is None:
            await self._actor.create(CONFIG_MAPS, name, {"metadata": {"name": AUTHORITY}, "data": dict(self._data)})
        elif authority.parse().get("data") != self._data:
            await self._actor.change(authority, self._restore)

    def _restore(self, authority: Object) -> None:
        authority["data"] = dict(self._data)


class NamespaceFinalizer(Follower):
    """Deletes everything in a namespace that ends, and when the last object is gone, the namespace."""

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
        if is_being_deleted(namespace):
            self._ending.add(name)
            self._worker.add(name)

    async def work(self, name: str) -> None:
        if name not in self._ending:  # a retry that comes late: this is another of the name
            return
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

"""What every namespace has: a ServiceAccount `default`, and a ConfigMap with the CA by which pods know this server."""

from __future__ import annotations

from isvc.apiserver.background.follower import Follower
from isvc.apiserver.store.entry import Event
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS

ACCOUNT = "default"
AUTHORITY = "kube-root-ca.crt"


class NamespaceAccounts(Follower):
    def __init__(self, api: Api) -> None:
        super().__init__(api, "serviceaccount-controller")
        self._data = {"ca.crt": api.identity.ca.read_text()}
        for entry in api.store.list(str(NAMESPACES)):
            self._worker.add(entry.name)

    def on_event(self, event: Event) -> None:
        entry = event.entry
        if entry.collection == str(NAMESPACES):
            self._worker.add(entry.name)
        elif (entry.collection, entry.name) in ((str(SERVICE_ACCOUNTS), ACCOUNT), (str(CONFIG_MAPS), AUTHORITY)):
            self._worker.add(entry.namespace)

    async def work(self, name: str) -> None:
        namespace = self._store.get(str(NAMESPACES), "", name)
        if namespace is None or namespace.parse()["metadata"].get("deletionTimestamp"):
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

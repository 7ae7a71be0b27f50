"""The status of ResourceQuotas: what they limit, and what their namespace uses of that."""

from __future__ import annotations

from isvc.apiserver.admission.plugins.amounts import Amounts, amounts, total
from isvc.apiserver.admission.quota import COLLECTION
from isvc.apiserver.admission.quota_usage import UNCOUNTED, counted_names, in_scope, usage
from isvc.apiserver.background.follower import Follower
from isvc.apiserver.store.entry import Event
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.objects import Object
from isvc.kube.quantity import Quantity


class QuotaStatus(Follower):
    def __init__(self, api: Api) -> None:
        super().__init__(api, "resourcequota-controller")
        for entry in api.store.list(COLLECTION):
            self._worker.add(entry.namespace)

    def on_event(self, event: Event) -> None:
        namespace = event.entry.namespace
        if namespace and self._store.list(COLLECTION, namespace):
            self._worker.add(namespace)

    async def work(self, namespace: str) -> None:
        for entry in self._store.list(COLLECTION, namespace):
            quota = entry.parse()
            hard: Object = (quota.get("spec") or {}).get("hard") or {}
            status = {"hard": hard, "used": {name: str(value) for name, value in self._usage(namespace, quota).items()}}

            def set_status(live: Object, status: Object = status) -> None:
                live["status"] = status

            before = quota.get("status") or {}
            if before.get("hard") != hard or amounts(before.get("used")) != amounts(status["used"]):
                await self._actor.change(entry, set_status, "status")

    def _usage(self, namespace: str, quota: Object) -> Amounts:
        hard = amounts(quota["spec"].get("hard"))
        used = dict.fromkeys(hard, Quantity.parse("0"))
        for collection in self._store.collections():
            names = counted_names(collection, hard) if collection not in UNCOUNTED else []
            for entry in self._store.list(collection, namespace) if names else ():
                obj = entry.parse()
                if in_scope(quota, collection, obj):
                    mine = usage(collection, obj)
                    used = total(used, {name: mine[name] for name in names if name in mine})
        return used

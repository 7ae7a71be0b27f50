"""ResourceQuota: what a namespace may use in all. The last to be asked, because it writes down what a write will use.

A quota limits nothing before its status says what is used; that is the work of a controller (`background.quotas`),
which also takes back what was charged for writes that came to nothing.
"""

from __future__ import annotations

from isvc.apiserver.admission.plugins.amounts import Amounts, amounts, total
from isvc.apiserver.admission.plugins.plugin import forbidden
from isvc.apiserver.admission.quota_usage import UNCOUNTED, counted_names, in_scope, missing_amounts, usage
from isvc.apiserver.request import AdmissionRequest
from isvc.apiserver.store.entry import Entry
from isvc.apiserver.store.store import Stale, Store
from isvc.kube.objects import Object, dig
from isvc.kube.quantity import Quantity

COLLECTION = "resourcequotas"
_ATTEMPTS = 8


class ResourceQuota:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def charge(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None:
        """Adds what the write uses to every quota that it falls under, or refuses the write."""
        collection = request.description.collection
        if obj is None or not request.namespace or collection in UNCOUNTED or not _concerns(request, obj, old):
            return
        for each in self._store.list(COLLECTION, request.namespace):
            for _ in range(_ATTEMPTS):
                entry = self._store.latest(COLLECTION, each.namespace, each.name)
                charged = _charge(request, entry.parse(), obj, old) if entry else None
                if entry is None or charged is None or request.dry_run:
                    break
                try:
                    await self._write(entry, charged)
                    break
                except Stale:
                    continue

    async def _write(self, entry: Entry, quota: Object) -> None:
        await self._store.put(COLLECTION, entry.namespace, entry.name, quota, entry, entry.epoch)


def _concerns(request: AdmissionRequest, obj: Object, old: Object | None) -> bool:
    collection = request.description.collection
    if request.operation == "CREATE":
        return not request.subresource
    if old is None or collection not in ("pods", "services", "persistentvolumeclaims"):
        return False
    if collection != "pods":
        return not request.subresource
    deadline = "activeDeadlineSeconds"
    return request.subresource == "resize" or (deadline in obj["spec"]) != (deadline in old["spec"])


def _charge(request: AdmissionRequest, quota: Object, obj: Object, old: Object | None) -> Object | None:
    """Returns the quota with the write charged to it, or None when it makes no difference."""
    collection, name = request.description.collection, quota["metadata"]["name"]
    hard, used = amounts(dig(quota, "status", "hard")), amounts(dig(quota, "status", "used"))
    concerned = counted_names(collection, hard)
    if not concerned or not in_scope(quota, collection, obj):
        return None
    if collection == "pods" and (why := missing_amounts(concerned, obj)):
        raise forbidden(request, obj, f"failed quota: {name}: {why}")
    if set(concerned) - used.keys():
        raise forbidden(request, obj, f"status unknown for quota: {name}, resources: {','.join(sorted(concerned))}")
    wanted = usage(collection, obj)
    if old is not None and in_scope(quota, collection, old):
        wanted = _increase(usage(collection, old), wanted)
    wanted = {each: amount for each, amount in wanted.items() if amount and each in hard}
    if not wanted:
        return None
    after = total(used, wanted)
    exceeded = sorted(each for each in wanted if after[each] > hard[each])
    if exceeded:
        shown = [",".join(f"{each}={values[each]}" for each in exceeded) for values in (wanted, used, hard)]
        words = f"requested: {shown[0]}, used: {shown[1]}, limited: {shown[2]}"
        raise forbidden(request, obj, f"exceeded quota: {name}, {words}")
    written = {each: str(amount) for each, amount in after.items()}
    return {**quota, "status": {**quota["status"], "used": written}}


def _increase(before: Amounts, after: Amounts) -> Amounts:
    zero = Quantity.parse("0")
    return {each: max(amount - before.get(each, zero), zero) for each, amount in after.items()}

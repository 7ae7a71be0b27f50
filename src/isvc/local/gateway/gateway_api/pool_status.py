"""What the gateway reports about InferencePools: through which Gateways they are reached, and whether they can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from isvc.kube.objects import Key, Object, dig
from isvc.kube.resource import Resource
from isvc.local.gateway.endpoints.pools import PickerRef, pool_of
from isvc.local.gateway.gateway_api.attachment import Gateways, parent_key
from isvc.local.gateway.gateway_api.references import backend_references
from isvc.local.gateway.gateway_api.status import condition, stamp_all
from isvc.serving.thirdparty import GATEWAYS, INFERENCE_POOLS_V1ALPHA2

PICKS: Final = (
    "the gateway picks endpoints itself, by queue, cache use and prefix; the picker's configuration is not read"
)
AS_ONE: Final = (
    "prefill and decode run as one: servers of this machine cannot hand a prompt's cache on, so those for prefill get"
    " no requests; "
)


def pool_status(
    resource: Resource,
    pool: Object,
    routes: Iterable[Object],
    gateways: Gateways,
    *,
    picker: PickerRef | None,
    has_prefill: bool,
    now: str,
) -> Object:
    """Returns the status. The two API groups have the same in fields of different names."""
    field = "parent" if resource == INFERENCE_POOLS_V1ALPHA2 else "parents"
    before: Sequence[Object] = dig(pool, "status", field) or ()
    ours = _gateways_of(resource, pool, routes, gateways)
    others = [each for each in before if _key(each) not in gateways.by_key]
    accepted = f"Service {picker.service} picks endpoints" if picker else PICKS
    message = (AS_ONE if has_prefill else "") + accepted
    return {field: others + [_parent(key, pool, message, before, now) for key in ours]}


def _gateways_of(resource: Resource, pool: Object, routes: Iterable[Object], gateways: Gateways) -> list[Key]:
    """Gateways of this machine with a route that leads to the pool."""
    found = {
        parent_key(route, attached.parent)
        for route in routes
        if any(
            pool_of(ref) == resource and ref["name"] == pool["metadata"]["name"] for ref in backend_references(route)
        )
        for attached in gateways.attachments(route)
        if attached.problem is None
    }
    return sorted(found)


def _parent(gateway: Key, pool: Object, message: str, before: Sequence[Object], now: str) -> Object:
    reference = {"group": GATEWAYS.group, "kind": GATEWAYS.kind, "namespace": gateway.namespace, "name": gateway.name}
    conditions = [
        condition("Accepted", pool, None, message),
        condition("ResolvedRefs", pool, None, "nothing else is needed", "ResolvedRefs"),
    ]
    known = next((each.get("conditions") for each in before if _key(each) == gateway), None)
    return {"parentRef": reference, "conditions": stamp_all(conditions, known, now)}


def _key(parent: Object) -> Key:
    return Key(dig(parent, "parentRef", "namespace") or "", dig(parent, "parentRef", "name") or "")

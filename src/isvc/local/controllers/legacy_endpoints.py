"""Service → Endpoints (v1), the older form of EndpointSlices, which clients and charts of others still read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from isvc.kube.errors import AlreadyExists
from isvc.kube.objects import Key, Object, dig, labels_of, name_of, namespace_of, uid_of
from isvc.kube.resource import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Watch

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
_US: Final = "endpoint-controller"


def controller(context: Context) -> Controller:
    """Follows the slices, so that both always agree."""

    async def reconcile(key: Key) -> None:
        service = context.find(SERVICES, key)
        live = context.cache.get(ENDPOINTS, key.name, key.namespace)
        if service is None:
            if live is not None and labels_of(live).get(MANAGED_BY) == _US:
                await context.delete(ENDPOINTS, live)
        elif dig(service, "spec", "selector"):
            slices = context.cache.by_index(ENDPOINT_SLICES, OWNER, uid_of(service))
            if slices or live is not None:  # else there is nothing to say yet
                await _write(context, endpoints_of(service, slices), live)

    watches = [Watch(SERVICES), Watch(ENDPOINT_SLICES, to=OwnerOf(SERVICES)), Watch(ENDPOINTS)]
    return Controller("endpoints", reconcile, watches, workers=2)


async def _write(context: Context, wanted: Object, live: Object | None) -> None:
    if live is None:
        with suppress(AlreadyExists):
            await context.create(ENDPOINTS, wanted)
    elif (live.get("subsets") or []) != wanted["subsets"] or not labels_of(wanted).items() <= labels_of(live).items():
        patch = {"metadata": {"labels": labels_of(wanted)}, "subsets": wanted["subsets"]}
        await context.patch(ENDPOINTS, live, patch)


def endpoints_of(service: Object, slices: Sequence[Object]) -> Object:
    """Returns one subset for each slice: every pod has ports of its own here."""
    headless = {"service.kubernetes.io/headless": ""} if dig(service, "spec", "clusterIP") == "None" else {}
    labels = {**labels_of(service), MANAGED_BY: _US, **headless}
    metadata = {"name": name_of(service), "namespace": namespace_of(service), "labels": labels}
    subsets = [subset for each in sorted(slices, key=name_of) for subset in _subsets(each)]
    return ENDPOINTS.manifest(metadata, subsets=subsets)


def _subsets(endpoint_slice: Object) -> Iterable[Object]:
    endpoints = [each for each in endpoint_slice.get("endpoints") or () if not dig(each, "conditions", "terminating")]
    if not endpoints:
        return
    subset: Object = {}
    for field, ready in (("addresses", True), ("notReadyAddresses", False)):
        if found := [_address(each) for each in endpoints if bool(dig(each, "conditions", "ready")) == ready]:
            subset[field] = found
    if ports := endpoint_slice.get("ports"):
        subset["ports"] = [{key: value for key, value in port.items() if value != ""} for port in ports]
    yield subset


def _address(endpoint: Object) -> Object:
    address: Object = {"ip": endpoint["addresses"][0]}
    if node := endpoint.get("nodeName"):
        address["nodeName"] = node
    return {**address, "targetRef": endpoint["targetRef"]}

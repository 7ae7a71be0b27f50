"""Service → EndpointSlices: which pods answer for a Service, and on which local port each of them does.

Every pod has ports of its own here, so every pod has a slice of its own. New endpoints are written before old ones go,
so that a watcher sees the replacement of an endpoint before it loses the endpoint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from isvc.kube.objects import Key, Object, dig, is_being_deleted, labels_of, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_ref, is_controlled_by
from isvc.kube.pods import is_terminal, port_of_pod
from isvc.kube.resource import ENDPOINT_SLICES, PODS, SERVICE_NAME_LABEL, SERVICES
from isvc.local.controllers.pods import is_ready
from isvc.local.controllers.selection import LABELS, SELECTOR, pods_with_labels, services_selecting
from isvc.local.gateway.endpoints.services import SERVICE_OF_SLICE, service_of_slice
from isvc.local.node.pods.ports import local_ports
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Watch, changed
from isvc.toolkit.reads import Read

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
_US = "endpointslice-controller.k8s.io"


def controller(context: Context) -> Controller:
    def services_of(pod: Object) -> Iterable[Key]:
        return map(Key.of, services_selecting(context.cache, pod))

    watches = [
        Watch(SERVICES),
        Watch(PODS, to=services_of, when=changed(_face)),
        Watch(ENDPOINT_SLICES, to=OwnerOf(SERVICES)),
    ]
    reads = [
        Read(SERVICES, indexers=SELECTOR),
        Read(PODS, indexers=LABELS),
        Read(ENDPOINT_SLICES, indexers={SERVICE_OF_SLICE: service_of_slice}),
    ]
    return Controller("endpointslice", EndpointSlices(context).reconcile, watches, workers=4, reads=reads)


def _face(pod: Object) -> tuple[object, ...]:
    """Returns what of a pod its endpoints show."""
    phase = dig(pod, "status", "phase")
    return labels_of(pod), local_ports(pod), dig(pod, "status", "podIP"), phase, is_ready(pod), is_being_deleted(pod)


class EndpointSlices:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._cache = context.cache

    async def reconcile(self, key: Key) -> None:
        service = self._context.find(SERVICES, key)
        if service is None or not dig(service, "spec", "selector"):
            return
        pods = pods_with_labels(self._cache, key.namespace, dig(service, "spec", "selector"))
        wanted = {name_of(item): item for pod in pods if (item := slice_of(service, pod)) is not None}
        existing = {name_of(s): s for s in self._slices(key)}
        for name, item in sorted(wanted.items(), key=lambda pair: not _is_ready(pair[1])):
            await self._write(service, item, existing.get(name))
        for name in existing.keys() - wanted.keys():
            await self._context.delete(ENDPOINT_SLICES, existing[name])

    def _slices(self, key: Key) -> list[Object]:
        """Returns our slices of the Service, also of one that had its name before: they show the same pods."""
        found = self._cache.by_index(ENDPOINT_SLICES, SERVICE_OF_SLICE, str(key))
        return [each for each in found if labels_of(each).get(MANAGED_BY) == _US]

    async def _write(self, service: Object, wanted: Object, existing: Object | None) -> None:
        if existing is None:
            await self._context.create(ENDPOINT_SLICES, wanted)
            return
        is_the_same = all(existing.get(field) == wanted[field] for field in ("endpoints", "ports"))
        if not is_the_same or not is_controlled_by(existing, uid_of(service)):
            version = existing["metadata"]["resourceVersion"]
            metadata = {**wanted["metadata"], "resourceVersion": version}
            await self._context.update(ENDPOINT_SLICES, {**wanted, "metadata": metadata})


def _is_ready(endpoint_slice: Object) -> bool:
    return bool(dig(endpoint_slice, "endpoints", 0, "conditions", "ready"))


def slice_of(service: Object, pod: Object) -> Object | None:
    """Returns one pod's endpoints; None while it has no address, or when it has ended."""
    address = dig(pod, "status", "podIP")
    ports_here = local_ports(pod)
    if not address or not ports_here or is_terminal(pod):
        return None
    ports = [port for item in dig(service, "spec", "ports") or [] if (port := _port(item, pod, ports_here)) is not None]
    serving, terminating = is_ready(pod), is_being_deleted(pod)
    publish_all = bool(dig(service, "spec", "publishNotReadyAddresses"))
    ready = publish_all or (serving and not terminating)
    suffix = hashlib.sha256(uid_of(pod).encode()).hexdigest()[:10]
    metadata = {
        "name": f"{name_of(service)}-{suffix}",
        "namespace": namespace_of(service),
        "labels": {SERVICE_NAME_LABEL: name_of(service), MANAGED_BY: _US},
        "ownerReferences": [controller_ref(SERVICES.typed(service))],
    }
    endpoint = {
        "addresses": [address],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "nodeName": dig(pod, "spec", "nodeName"),
        "targetRef": {"kind": "Pod", "name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)},
    }
    return ENDPOINT_SLICES.manifest(metadata, addressType="IPv4", endpoints=[endpoint], ports=ports)


def _port(item: Object, pod: Object, ports_here: dict[int, int]) -> Object | None:
    target: int | str = item["targetPort"] if "targetPort" in item else item["port"]
    if (number := port_of_pod(pod, target)) is None:
        return None
    port: Object = {"name": item.get("name") or "", "port": ports_here.get(number, number)}
    port["protocol"] = item.get("protocol") or "TCP"
    if protocol := item.get("appProtocol"):
        port["appProtocol"] = protocol
    return port

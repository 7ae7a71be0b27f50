"""metrics.k8s.io: what pods and nodes use, as a cluster's metrics server has it. Nothing of it is stored.

It is served while there is an APIService `v1beta1.metrics.k8s.io` that names no other server: whoever runs nodes that
measure creates it. The figures are those of the nodes' kubelets (`verbs/usage`).
"""

from __future__ import annotations

from typing import Final

from isvc.apiserver.resources.description import Description
from isvc.apiserver.resources.registry import Registry
from isvc.apiserver.store.entry import DELETED, Entry, Event
from isvc.apiserver.store.store import Store
from isvc.apiserver.tables.columns import NAME, Column, at
from isvc.kube.objects import Object, dig
from isvc.kube.quantity import Quantity
from isvc.kube.resource import API_SERVICES, NODE_METRICS, POD_METRICS, Resource

NAME_OF_SERVICE: Final = f"{POD_METRICS.version}.{POD_METRICS.group}"
_COLLECTION: Final = str(API_SERVICES)


class ResourceMetrics:
    """Keeps the registry in step with the APIService."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._registry = registry
        if (entry := store.get(_COLLECTION, "", NAME_OF_SERVICE)) is not None:
            self._serve(entry)
        store.subscribe(_COLLECTION, self._on_event)

    def _on_event(self, event: Event) -> None:
        if event.entry.name != NAME_OF_SERVICE:
            return
        if event.type == DELETED:
            self._registry.remove(NAME_OF_SERVICE)
        else:
            self._serve(event.entry)

    def _serve(self, entry: Entry) -> None:
        if dig(entry.parse(), "spec", "service") is None:
            self._registry.install(NAME_OF_SERVICE, [_describe(POD_METRICS), _describe(NODE_METRICS)])
        else:
            self._registry.remove(NAME_OF_SERVICE)


def usage(metrics: Object, resource: str) -> Quantity:
    """Returns what all containers of a pod, or a whole node, use of a resource."""
    usages = [metrics["usage"]] if "usage" in metrics else [each["usage"] for each in metrics["containers"]]
    return sum((Quantity.parse(usage[resource]) for usage in usages), Quantity(0))


_COLUMNS: Final = (
    NAME,
    Column("CPU", lambda metrics: str(usage(metrics, "cpu"))),
    Column("Memory", lambda metrics: str(usage(metrics, "memory"))),
    at("Window", "window"),
)


def _describe(resource: Resource) -> Description:
    return Description(resource, verbs=("get", "list"), columns=_COLUMNS)

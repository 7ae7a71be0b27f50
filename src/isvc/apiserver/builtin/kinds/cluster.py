"""coordination.k8s.io, events.k8s.io and scheduling.k8s.io."""

from __future__ import annotations

from typing import Final

from isvc.apiserver.builtin import conversion, strategies
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import storage as rules
from isvc.apiserver.tables import cluster
from isvc.kube.resource import EVENTS, LEASES, Resource

_SELECT_EVENTS: Final = (
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
)
KINDS: Final = (
    Kind(
        resource=LEASES,
        columns=cluster.LEASES,
        created_by_update=True,
        version_required=True,
        check=rules.lease,
    ),
    Kind(
        resource=Resource("events.k8s.io", "v1", "events", "Event"),
        short_names=("ev",),
        columns=cluster.EVENTS,
        selectable=_SELECT_EVENTS,
        created_by_update=True,
        check=rules.event,
        convert=conversion.event,
        storage=EVENTS,
        strategy=strategies.Events,
    ),
    Kind(
        resource=Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False),
        short_names=("pc",),
        columns=cluster.PRIORITY_CLASSES,
        generation=True,
    ),
)

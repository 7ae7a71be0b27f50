"""Groups of a kind or two: coordination, events, scheduling, node, certificates and flowcontrol."""

from __future__ import annotations

from typing import Final

from isvc.apiserver.builtin import conversion, strategies
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import access as certificate_rules
from isvc.apiserver.builtin.validation import storage as rules
from isvc.apiserver.resources.description import READ_WRITE, Subresource
from isvc.apiserver.tables import access, cluster
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
_FLOW: Final = "flowcontrol.apiserver.k8s.io"
_REQUESTS: Final = "certificatesigningrequests"
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
        strategy_class=strategies.Events,
    ),
    Kind(
        resource=Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False),
        short_names=("pc",),
        columns=cluster.PRIORITY_CLASSES,
        generation=True,
    ),
    Kind(
        resource=Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False),
        columns=cluster.RUNTIME_CLASSES,
        created_by_update=True,
        version_required=True,
    ),
    Kind(
        resource=Resource("certificates.k8s.io", "v1", _REQUESTS, "CertificateSigningRequest", namespaced=False),
        short_names=("csr",),
        columns=access.CERTIFICATE_REQUESTS,
        selectable=("spec.signerName",),
        status=True,
        subresources=(Subresource("approval", "CertificateSigningRequest", READ_WRITE),),
        check=certificate_rules.request,
        strategy_class=strategies.CertificateRequests,
    ),
    Kind(
        resource=Resource(_FLOW, "v1", "flowschemas", "FlowSchema", namespaced=False),
        columns=cluster.FLOW_SCHEMAS,
        status=True,
        generation=True,
    ),
    Kind(
        resource=Resource(_FLOW, "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", namespaced=False),
        columns=cluster.PRIORITY_LEVELS,
        status=True,
        generation=True,
    ),
)

"""networking.k8s.io and discovery.k8s.io: Ingresses, NetworkPolicies and EndpointSlices."""

from __future__ import annotations

from typing import Final

from isvc.apiserver.builtin import strategies, warnings
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import services as rules
from isvc.apiserver.tables import network
from isvc.kube.resource import ENDPOINT_SLICES, INGRESSES, Resource

_GROUP: Final = "networking.k8s.io"
KINDS: Final = (
    Kind(
        resource=ENDPOINT_SLICES,
        columns=network.ENDPOINT_SLICES,
        generation=True,
        check=rules.endpoint_slice,
        check_update=rules.endpoint_slice_update,
        strategy_class=strategies.EndpointSlices,
    ),
    Kind(
        resource=Resource(_GROUP, "v1", "ingressclasses", "IngressClass", namespaced=False),
        columns=network.INGRESS_CLASSES,
        generation=True,
    ),
    Kind(
        resource=INGRESSES,
        short_names=("ing",),
        columns=network.INGRESSES,
        warn=warnings.ingress,
        status=True,
        generation=True,
        check=rules.ingress,
    ),
    Kind(
        resource=Resource(_GROUP, "v1", "ipaddresses", "IPAddress", namespaced=False),
        short_names=("ip",),
        columns=network.IP_ADDRESSES,
        names="address",
    ),
    Kind(
        resource=Resource(_GROUP, "v1", "networkpolicies", "NetworkPolicy"),
        short_names=("netpol",),
        columns=network.NETWORK_POLICIES,
        generation=True,
        check=rules.network_policy,
    ),
    Kind(
        resource=Resource(_GROUP, "v1", "servicecidrs", "ServiceCIDR", namespaced=False),
        columns=network.SERVICE_CIDRS,
        status=True,
    ),
)

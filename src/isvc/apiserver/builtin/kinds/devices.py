"""resource.k8s.io: device classes, ResourceClaims and ResourceSlices."""

from __future__ import annotations

from typing import Any, Final

from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import storage as rules
from isvc.apiserver.tables import cluster
from isvc.kube.resource import Resource


def _kind(plural: str, name: str, *, namespaced: bool = True, **record: Any) -> Kind:
    resource = Resource("resource.k8s.io", "v1", plural, name, namespaced)
    return Kind(resource=resource, returns_deleted=True, **record)


KINDS: Final = (
    _kind("deviceclasses", "DeviceClass", namespaced=False, generation=True),
    _kind(
        "resourceclaims",
        "ResourceClaim",
        columns=cluster.RESOURCE_CLAIMS,
        status=True,
        check_update=rules.resource_claim_update,
    ),
    _kind("resourceclaimtemplates", "ResourceClaimTemplate", check_update=rules.resource_claim_update),
    _kind(
        "resourceslices",
        "ResourceSlice",
        namespaced=False,
        columns=cluster.RESOURCE_SLICES,
        selectable=("spec.driver", "spec.nodeName"),
        generation=True,
    ),
)

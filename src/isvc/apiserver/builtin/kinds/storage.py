"""storage.k8s.io and resource.k8s.io: storage classes, CSI drivers, and devices that pods claim."""

from __future__ import annotations

from typing import Any, Final

from isvc.apiserver.builtin import prepare
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import storage as rules
from isvc.apiserver.tables import cluster, storage
from isvc.kube.resource import Resource


def _kind(plural: str, name: str, *, namespaced: bool = False, **record: Any) -> Kind:
    return Kind(resource=Resource("storage.k8s.io", "v1", plural, name, namespaced), **record)


STORAGE: Final = (
    _kind("csidrivers", "CSIDriver", columns=storage.DRIVERS, version_required=True, returns_deleted=True),
    _kind("csinodes", "CSINode", columns=storage.DRIVER_NODES, version_required=True, returns_deleted=True),
    _kind(
        "csistoragecapacities",
        "CSIStorageCapacity",
        namespaced=True,
        columns=storage.CAPACITIES,
        version_required=True,
    ),
    _kind(
        "storageclasses",
        "StorageClass",
        short_names=("sc",),
        columns=storage.STORAGE_CLASSES,
        returns_deleted=True,
        check=rules.storage_class,
    ),
    _kind(
        "volumeattachments",
        "VolumeAttachment",
        columns=storage.ATTACHMENTS,
        status=True,
        version_required=True,
        returns_deleted=True,
    ),
    _kind(
        "volumeattributesclasses",
        "VolumeAttributesClass",
        short_names=("vac",),
        columns=storage.ATTRIBUTES_CLASSES,
        returns_deleted=True,
        on_create=prepare.attributes_class,
    ),
)


def _device(plural: str, name: str, *, namespaced: bool = True, **record: Any) -> Kind:
    resource = Resource("resource.k8s.io", "v1", plural, name, namespaced)
    return Kind(resource=resource, returns_deleted=True, **record)


DEVICES: Final = (
    _device("deviceclasses", "DeviceClass", namespaced=False, generation=True),
    _device(
        "resourceclaims",
        "ResourceClaim",
        columns=cluster.RESOURCE_CLAIMS,
        status=True,
        check_update=rules.resource_claim_update,
    ),
    _device("resourceclaimtemplates", "ResourceClaimTemplate", check_update=rules.resource_claim_update),
    _device(
        "resourceslices",
        "ResourceSlice",
        namespaced=False,
        columns=cluster.RESOURCE_SLICES,
        selectable=("spec.driver", "spec.nodeName"),
        generation=True,
    ),
)

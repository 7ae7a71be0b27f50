"""storage.k8s.io: what provides volumes."""

from __future__ import annotations

from typing import Any, Final

from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.validation import storage as rules
from isvc.apiserver.tables import storage
from isvc.kube.resource import Resource


def _kind(plural: str, name: str, *, namespaced: bool = False, **record: Any) -> Kind:
    return Kind(resource=Resource("storage.k8s.io", "v1", plural, name, namespaced), **record)


KINDS: Final = (
    _kind("csidrivers", "CSIDriver", version_required=True, returns_deleted=True),
    _kind(
        "storageclasses",
        "StorageClass",
        short_names=("sc",),
        columns=storage.STORAGE_CLASSES,
        returns_deleted=True,
        check=rules.storage_class,
    ),
)

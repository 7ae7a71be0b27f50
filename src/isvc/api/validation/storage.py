"""Validates storage URIs, mount paths and confidential storage of a component."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from isvc.api.inferenceservice.implementations import Component, Implementation
from isvc.api.inferenceservice.models import StorageUri
from isvc.api.validation import Problem

_RESOURCE_ID = re.compile(r"kbs:///[a-zA-Z0-9_.-]+/[a-zA-Z0-9_.-]+/[a-zA-Z0-9_.-]+")


def storage_uris(component: Component, chosen: Sequence[Implementation], path: str) -> Iterator[Problem]:
    """Checks downloads that come instead of the model's: each to a place of its own, all below one folder."""
    uris = component.storage_uris
    if uris is None:
        return
    if chosen and chosen[0].storage_uri is not None:
        yield Problem(
            f"{path}.storageUris", "setting both storageUri and storageUris is not supported; use one of them"
        )
        return
    for index, each in enumerate(uris):
        yield from _one(each, f"{path}.storageUris[{index}]")
    folders = [each.mount_path for each in uris if not each.uri.startswith("pvc://")]
    claims = [each.mount_path for each in uris if each.uri.startswith("pvc://")]
    if len(folders) < 2:
        return
    if len(claims) != len(set(claims)):
        yield Problem(f"{path}.storageUris", "PVC storage paths must be unique: each needs a mountPath of its own")
    if posixpath.commonpath([f"/{folder.strip('/')}" for folder in folders]) == "/":
        yield Problem(
            f"{path}.storageUris",
            f"storage paths must have a common parent directory other than /, got {', '.join(folders)};"
            " try /mnt/models/<name>",
        )


def _one(each: StorageUri, path: str) -> Iterator[Problem]:
    if not each.uri:
        yield Problem(f"{path}.uri", "storage URI cannot be empty")
    if each.mount_path == "/":
        yield Problem(f"{path}.mountPath", "storage path cannot be empty: it has to be below /, such as /mnt/models")
    elif not each.mount_path.startswith("/"):
        yield Problem(f"{path}.mountPath", f"storage path must be absolute (/mnt/models), got {each.mount_path!r}")
    elif ".." in each.mount_path:
        yield Problem(
            f"{path}.mountPath", f"storage path cannot contain '..' for security reasons, got {each.mount_path!r}"
        )


def confidential(chosen: Sequence[Implementation], path: str) -> Iterator[Problem]:
    spec = chosen[0].confidential if chosen else None
    if spec is None or not spec.enabled:
        return
    if not chosen[0].storage_uri:
        yield Problem(f"{path}.storageUri", "confidential model serving requires storageUri to be set")
    yield from resource_id(spec.resource_id, path)


def resource_id(identifier: str | None, path: str) -> Iterator[Problem]:
    if identifier and not _RESOURCE_ID.fullmatch(identifier):
        yield Problem(
            f"{path}.confidential.resourceId",
            f"must be in the format kbs:///<repo>/<type>/<tag>, got {identifier!r}",
        )


def confidential_warnings(enabled: bool, uri: str | None) -> Iterator[str]:
    if enabled and uri and uri.startswith("oci://"):
        yield (
            "confidential has no effect on oci:// models: images are decrypted by the container runtime"
            " (runtimeClassName)"
        )
    if enabled and uri and uri.startswith("pvc://"):
        yield "confidential has no effect on pvc:// models: nothing is downloaded from a volume"

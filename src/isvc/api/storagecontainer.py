"""ClusterStorageContainer: which container downloads from which kind of storage."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import Container, Required, Schema, Spec, zero
from isvc.api.meta import Kind


class SupportedUriFormat(Spec):
    """A kind of URI: by prefix, or by regular expression."""

    prefix: str = ""
    """What URIs start with, for example s3://."""
    regex: str = ""
    """What URIs match. Only looked at when there is no prefix."""


class StorageContainerSpec(Spec):
    """A container, and the URIs it can download."""

    container: Required[Container] = zero(dict)
    """The container."""
    supported_uri_formats: Required[list[SupportedUriFormat]] = zero(list)
    """URIs that it can download."""
    workload_type: Annotated[str, Schema(default="initContainer")] = ""
    """Where it runs: initContainer or localModelDownloadJob."""
    supports_multi_model_download: Annotated[bool, Schema(default=False)] | None = None
    """Whether it can download several models in one go."""


class ClusterStorageContainer(Kind):
    """The container that downloads from some kind of storage, for every namespace."""

    spec: StorageContainerSpec = StorageContainerSpec()
    """The container, and what it can download."""
    disabled: bool | None = None
    """Whether nothing may use it."""

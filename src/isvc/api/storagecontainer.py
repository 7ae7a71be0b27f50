"""ClusterStorageContainer: which container downloads from which kind of storage."""

from __future__ import annotations

import re
from typing import Annotated

from isvc.api.fields import Container, Required, Schema, Spec, zero
from isvc.api.meta import Kind


class SupportedUriFormat(Spec):
    """A kind of URI: by prefix, or by regular expression."""

    prefix: str = ""
    """What URIs start with, for example s3://."""
    regex: str = ""
    """What URIs match. Only looked at when there is no prefix."""

    def matches(self, uri: str) -> bool:
        if self.prefix:
            return uri.startswith(self.prefix)
        return bool(self.regex) and re.search(self.regex, uri) is not None


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

    def supports(self, uri: str) -> bool:
        """Whether it downloads this URI. A bad regular expression raises `re.error`."""
        return any(form.matches(uri) for form in self.supported_uri_formats)


class ClusterStorageContainer(Kind):
    """The container that downloads from some kind of storage, for every namespace."""

    spec: StorageContainerSpec = StorageContainerSpec()
    """The container, and what it can download."""
    disabled: bool | None = None
    """Whether nothing may use it."""

"""What admission needs to know about the rest of the server: other objects, in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from isvc.kube.objects import Object


class Reader(Protocol):
    """A collection is named after its resource: `services`, `customresourcedefinitions.apiextensions.k8s.io`."""

    def get(self, collection: str, name: str, namespace: str = "") -> Object | None: ...

    def labels(self, collection: str, name: str, namespace: str = "") -> Mapping[str, str]: ...

    def list(self, collection: str, namespace: str = "") -> list[Object]: ...

    def revision(self, collection: str) -> int:
        """Changes whenever something in the collection changes."""
        ...

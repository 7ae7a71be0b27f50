"""What admission needs to know about the rest of the server: other objects, in memory."""

from __future__ import annotations

from typing import Protocol

from isvc.kube.objects import Object


class Reader(Protocol):
    """A shelf is named as its resource: `services`, `customresourcedefinitions.apiextensions.k8s.io`."""

    def get(self, shelf: str, name: str, namespace: str = "") -> Object | None: ...

    def list(self, shelf: str, namespace: str = "") -> list[Object]: ...

    def revision(self, shelf: str) -> int:
        """Changes whenever something on the shelf changes."""
        ...

"""The versions that reconciles under way have written, by the object that each of them reconciles.

A write of a reconcile comes back as an event of the watch. A controller that ignores such events has to
distinguish them from events that others caused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from isvc.kube.objects import Key, Object, resource_version_of


class OwnWrites:
    def __init__(self) -> None:
        self._open: dict[tuple[str, Key], set[str]] = {}

    @contextmanager
    def recorded(self, kind: str, key: Key) -> Iterator[set[str]]:
        """The set to which each version is added that is written for this object meanwhile."""
        versions = self._open[kind, key] = set()
        try:
            yield versions
        finally:
            del self._open[kind, key]

    def add(self, owner: Object, written: Object) -> None:
        versions = self._open.get((owner.get("kind", ""), Key.of(owner)))
        if versions is not None:
            versions.add(resource_version_of(written))

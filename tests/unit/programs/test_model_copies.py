"""The metric of copies follows the statuses of caches, as they come, change and go."""

from __future__ import annotations

from typing import Any

from isvc.kube.resource import Resource
from isvc.programs.model_copies import STATES, copies_of, count_copies
from isvc.toolkit.metrics import Metrics


class Changes:
    """Stands in the place of a cache: the test says what changes."""

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def subscribe(self, resource: Resource, handler: Any) -> None:
        self.handlers.append(handler)


def test_copies_are_counted_over_all_caches():
    metrics, changes = Metrics(), Changes()
    count_copies(changes, metrics)  # type: ignore[arg-type]
    cluster, namespaced = changes.handlers

    def counted() -> dict[str, float | None]:
        return {state: metrics.registry.get_sample_value("isvc_model_copies", {"state": state}) for state in STATES}

    assert counted() == {"available": 0, "failed": 0, "pending": 0}
    one = {"status": {"copies": {"total": 5, "available": 2, "failed": 1}}}
    other = {"status": {"copies": {"total": 1, "available": 1}}}
    cluster(None, one)
    namespaced(None, other)
    assert counted() == {"available": 3, "failed": 1, "pending": 2}
    cluster(one, {"status": {"copies": {"total": 5, "available": 5}}})
    namespaced(other, None)
    assert counted() == {"available": 5, "failed": 0, "pending": 0}


def test_a_cache_without_status_has_none():
    assert copies_of({}) == copies_of(None) == {"available": 0, "failed": 0, "pending": 0}

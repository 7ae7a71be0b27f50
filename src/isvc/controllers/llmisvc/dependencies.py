"""Which services depend on which objects that are not their own: gateways, routes, pools, ConfigMaps.

What a service refers to shows only when its presets are merged. So each reconcile says what it found, and a change of
such an object leads straight to its dependents, without rendering anything. After a start every service is reconciled
once, which fills the map.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from isvc.kube.objects import Key
from isvc.kube.resource import Resource

Reference = tuple[Resource, Key]


class Dependencies:
    def __init__(self) -> None:
        self._references: dict[Key, frozenset[Reference]] = {}
        self._dependents: defaultdict[Reference, set[Key]] = defaultdict(set)

    def record(self, service: Key, references: frozenset[Reference]) -> None:
        """The service depends on these and no longer on others."""
        before = self._references.get(service, frozenset())
        for gone in before - references:
            self._dependents[gone].discard(service)
            if not self._dependents[gone]:
                del self._dependents[gone]
        for new in references - before:
            self._dependents[new].add(service)
        if references:
            self._references[service] = references
        else:
            self._references.pop(service, None)

    def of(self, resource: Resource, key: Key) -> Iterable[Key]:
        return sorted(self._dependents.get((resource, key), ()))

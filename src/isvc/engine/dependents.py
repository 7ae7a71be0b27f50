"""Which objects depend on which others that are not their own: gateways, routes, pools, ConfigMaps.

What an object refers to may show only when it is planned. So each plan says what it looked for, and a change of that
leads straight to the dependents, without planning anything. After a start every object is reconciled once, which fills
the map.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from isvc.engine.plan import Reference
from isvc.kube.objects import Key
from isvc.kube.resource import Resource


class Dependents:
    def __init__(self) -> None:
        self._references: dict[Key, frozenset[Reference]] = {}
        self._dependents: defaultdict[Reference, set[Key]] = defaultdict(set)

    def record(self, key: Key, references: frozenset[Reference]) -> None:
        """The object depends on these and no longer on others."""
        before = self._references.get(key, frozenset())
        for gone in before - references:
            self._dependents[gone].discard(key)
            if not self._dependents[gone]:
                del self._dependents[gone]
        for new in references - before:
            self._dependents[new].add(key)
        if references:
            self._references[key] = references
        else:
            self._references.pop(key, None)

    def of(self, resource: Resource, key: Key) -> Iterable[Key]:
        return sorted(self._dependents.get((resource, key), ()))

"""Which objects depend on which others that are not their own: runtimes, gateways, routes, pools, ConfigMaps.

What an object refers to may show only when it is planned. So each plan says what it looked for, and a change of that
leads straight to the dependents, without planning anything. An object that has been observed and not planned yet may
depend on anything, so that no change gets lost meanwhile. After a start every object is reconciled once, which fills
the map.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from isvc.engine.plan import Reference
from isvc.kube.objects import Key
from isvc.kube.resource import Resource


def any_of(resource: Resource, namespace: str = "") -> Reference:
    """Returns a reference to all objects of a kind, there or not."""
    return resource, Key(namespace, "")


class Dependents:
    def __init__(self) -> None:
        self._references: dict[Key, frozenset[Reference]] = {}
        self._dependents: defaultdict[Reference, set[Key]] = defaultdict(set)
        self._undecided: set[Key] = set()

    def begin(self, key: Key) -> None:
        """Notes that the object is being observed: it may depend on anything, until it is recorded on what."""
        self._undecided.add(key)

    def record(self, key: Key, references: frozenset[Reference]) -> None:
        """Notes that the object depends on these and no longer on others."""
        self._undecided.discard(key)
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
        return sorted({*self._dependents.get((resource, key), ()), *self.of_any(resource, key.namespace)})

    def of_any(self, resource: Resource, namespace: str = "") -> Iterable[Key]:
        """Returns those that look for an object of the kind and have found none."""
        return sorted({*self._dependents.get(any_of(resource, namespace), ()), *self._undecided})

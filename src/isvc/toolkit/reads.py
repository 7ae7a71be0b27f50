"""What a controller or webhook reads from the cache, declared as a value.

A program collects the declarations of its parts before it starts and hands them to one cache, so that nothing depends
on which part was made first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from isvc.kube.objects import Object, labels_of, namespace_of
from isvc.kube.resource import Resource
from isvc.kube.selectors import FieldSelector, LabelSelector
from isvc.toolkit.store import Indexer

Transform = Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Read:
    """Objects of one kind to keep in memory: which of them, how much of each, and by what they are looked up.

    An `optional` kind may be missing from the cluster; it is empty then, and read as soon as its CRD appears.
    """

    resource: Resource
    namespace: str = ""
    labels: str = ""
    fields: str = ""
    optional: bool = False
    metadata_only: bool = False
    transform: Transform | None = None
    indexers: Mapping[str, Indexer] = field(default_factory=dict)

    def covers(self, obj: Object) -> bool:
        """Whether a watch with this selection brings the object."""
        return (
            self.namespace in ("", namespace_of(obj))
            and (not self.labels or LabelSelector.parse(self.labels).matches(labels_of(obj)))
            and (not self.fields or FieldSelector.parse(self.fields).matches(obj))
        )

"""What a controller or webhook reads from the cache, declared as a value.

A program collects the declarations of its parts before it starts. `merge` turns those of one kind into the selections
that have to be watched, so that nothing depends on which part was made first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

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
        """Returns whether a watch with this selection brings the object."""
        return (
            self.namespace in ("", namespace_of(obj))
            and (not self.labels or LabelSelector.parse(self.labels).matches(labels_of(obj)))
            and (not self.fields or FieldSelector.parse(self.fields).matches(obj))
        )

    def includes(self, other: Read) -> bool:
        """Returns whether every object that the other selects is selected here, too."""
        return (
            self.namespace in ("", other.namespace)
            and self.labels in ("", other.labels)
            and self.fields in ("", other.fields)
        )


class ConflictingReads(Exception):
    """Two parts of a program declare reads of one kind that no cache can serve together."""


class Declaration(NamedTuple):
    part: str  # who reads, for messages
    read: Read


def merge(declarations: Sequence[Declaration]) -> tuple[Read, ...]:
    """Returns the selections that serve all declarations of one kind.

    A selection that others include is dropped; what remains is watched side by side and read as one. A kind is optional
    if it is so for all. Objects are kept whole unless all reduce them alike. All have to agree on what an index means.
    """
    indexers = _indexers(declarations)
    optional = all(declaration.read.optional for declaration in declarations)
    metadata_only = all(declaration.read.metadata_only for declaration in declarations)
    transforms = {declaration.read.transform for declaration in declarations}
    transform = transforms.pop() if len(transforms) == 1 else None
    common = partial(replace, optional=optional, indexers=indexers, metadata_only=metadata_only, transform=transform)
    return tuple(common(read) for read in widest(read for _, read in declarations))


def widest(reads: Iterable[Read]) -> list[Read]:
    """Returns those reads of one kind that no other includes."""
    found: list[Read] = []
    for read in reads:
        if not any(other.includes(read) for other in found):
            found = [other for other in found if not read.includes(other)] + [read]
    return found


def _indexers(declarations: Iterable[Declaration]) -> dict[str, Indexer]:
    merged: dict[str, tuple[str, Indexer]] = {}
    for part, read in declarations:
        for name, indexer in read.indexers.items():
            owner, known = merged.setdefault(name, (part, indexer))
            if known is not indexer:
                raise ConflictingReads(f"{read.resource}: {owner} and {part} mean different things by index {name!r}")
    return {name: indexer for name, (_, indexer) in merged.items()}

"""One description per version of a resource: everything the generic code needs to know about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from isvc.apiserver.resources.strategy import Strategy
from isvc.apiserver.tables.columns import AGE, NAME, Column
from isvc.kube.objects import GVK
from isvc.kube.resource import Resource

READ_WRITE = ("get", "patch", "update")
ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource finds its numbers, as JSON paths without the leading dot: `spec.replicas`."""

    spec_replicas: str = "spec.replicas"
    status_replicas: str = "status.replicas"
    label_selector: str = "status.selector"  # a string there, or a LabelSelector object


class Subresource(NamedTuple):
    """A subresource beyond status and scale; its kind is of the same group and version unless said."""

    name: str
    kind: str
    verbs: tuple[str, ...]
    group_version: tuple[str, str] | None = None


@dataclass(frozen=True)
class Description:
    resource: Resource
    strategy: Strategy = field(default_factory=Strategy)
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    list_kind: str = ""
    status: bool = False
    scale: Scale | None = None
    #: The version that objects are kept in; another served version converts on the way in and out.
    storage: Resource | None = None
    #: How `kubectl get` shows it.
    columns: Sequence[Column] = (NAME, AGE)
    #: Paths usable in field selectors beyond metadata.name and metadata.namespace.
    selectable: tuple[str, ...] = ()
    #: True for kinds that come from a CustomResourceDefinition.
    custom: bool = False
    #: Which rule names follow: see `metadata.NAME_RULES`.
    names: str = "subdomain"
    #: Whether a completed deletion answers with the object instead of a Status.
    returns_deleted: bool = False
    subresources: tuple[Subresource, ...] = ()
    #: Sent back as a Warning header on every request, when the version is deprecated.
    deprecation: str = ""
    #: Bumped whenever the schema changes, so that stored objects are read through `Strategy.read`.
    epoch: int = field(default=0, compare=False)

    @cached_property
    def gvk(self) -> GVK:
        return self.resource.gvk

    @cached_property
    def stored(self) -> Resource:
        return self.storage or self.resource

    @cached_property
    def collection(self) -> str:
        """Returns the objects' collection in the store: `deployments.apps`; shared by all versions of a resource."""
        return str(self.stored)

    def has_subresource(self, name: str) -> bool:
        if name in ("status", "scale"):
            return self.status if name == "status" else self.scale is not None
        return any(each.name == name for each in self.subresources)

    @property
    def list_kind_name(self) -> str:
        return self.list_kind or f"{self.resource.kind}List"

    @property
    def singular_name(self) -> str:
        return self.singular or self.resource.kind.lower()

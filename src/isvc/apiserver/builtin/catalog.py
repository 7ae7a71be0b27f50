"""All built-in kinds, in the order in which discovery lists their groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.apiserver.builtin.base import BuiltIn, Claims
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.kinds import access, cluster, core, extensions, network, storage, workloads
from isvc.apiserver.resources.description import Description, Scale

KINDS: Final[tuple[Kind, ...]] = (
    *core.KINDS,
    *extensions.KINDS,
    *workloads.APPS,
    *access.REVIEWS,
    *workloads.AUTOSCALING,
    *workloads.BATCH,
    *cluster.KINDS,
    *network.KINDS,
    *access.KINDS,
    *storage.DEVICES,
    *storage.STORAGE,
)


def descriptions(claims: Claims) -> Iterator[Description]:
    return (describe(kind, claims) for kind in KINDS)


def describe(kind: Kind, claims: Claims) -> Description:
    return Description(
        resource=kind.resource,
        strategy=(kind.strategy or BuiltIn)(kind, claims),
        short_names=kind.short_names,
        categories=kind.categories,
        verbs=kind.verbs,
        status=kind.status,
        scale=Scale(label_selector="spec.selector") if kind.scale else None,
        storage=kind.storage,
        columns=kind.columns,
        selectable=kind.selectable,
        names=kind.names,
        returns_deleted=kind.returns_deleted,
        subresources=kind.subresources,
        deprecation=kind.deprecation,
    )

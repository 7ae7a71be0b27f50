"""All built-in kinds, in the order in which discovery lists their groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from isvc.apiserver.builtin.base import BuiltIn, Claims
from isvc.apiserver.builtin.kind import Kind
from isvc.apiserver.builtin.kinds import access, cluster, core, extensions, network, storage, workloads
from isvc.apiserver.resources.description import Description

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
    return replace(kind, strategy=(kind.strategy_class or BuiltIn)(kind, claims))

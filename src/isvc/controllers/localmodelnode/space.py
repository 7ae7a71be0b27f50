"""Whether a model fits: on the disk, and into the `storageLimit` of its group of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from isvc.api.localmodel import FAILED, LocalModelInfo, LocalModelNodeGroup
from isvc.api.model_downloads import GroupStorage
from isvc.controllers.localmodelnode.observe import Observed
from isvc.kube.objects import dig
from isvc.kube.quantity import Notation, Quantity


@dataclass(frozen=True, slots=True)
class Space:
    """What a model needs, as far as anybody knows, and what its group has left for it."""

    needed: int
    left: int | None
    group: str


class Allocation:
    """Shares out the disk. What is there, or under way, has its place; the others come in the order of the list."""

    def __init__(self, observed: Observed) -> None:
        self._observed = observed
        self._taken = Counter[str]()
        for key, model in observed.by_key.items():
            if key in observed.stock.complete or key in observed.under_way:
                self._taken[observed.group_of(model)] += self._needs(key, model)

    def find(self, key: str, model: LocalModelInfo) -> Space:
        """Returns the space for a model; one that is under way is not counted against itself."""
        group, needed = self._observed.group_of(model), self._needs(key, model)
        limit = self._observed.limit_of(group)
        others = self._taken[group] - (needed if key in self._observed.under_way else 0)
        return Space(needed, None if limit is None else max(limit - others, 0), group)

    def take(self, space: Space) -> None:
        self._taken[space.group] += space.needed

    def _needs(self, key: str, model: LocalModelInfo) -> int:
        """Returns its size: on the disk, as its cache announces it, or as far as an attempt that was stopped came."""
        observed = self._observed
        if (receipt := observed.stock.complete.get(key)) is not None:
            return receipt.bytes
        recorded = observed.recorded.get(model.status_key)
        known = recorded.bytes if recorded is not None and recorded.phase == FAILED else 0
        return max(observed.announced_size(model) or 0, observed.stock.incoming.get(key, 0), known)


def why_not(key: str, space: Space, observed: Observed) -> str:
    """Says why a model has no space, with the numbers and what would help; nothing if it has."""
    limit, node = observed.limit_of(space.group), observed.name
    if space.left is not None and limit is not None and space.needed > space.left:
        return (
            f"the model takes {amount(space.needed)}, but of the storageLimit {amount(limit)} of LocalModelNodeGroup "
            f"{space.group} only {amount(space.left)} are left on node {node}: raise storageLimit, delete a cache of "
            "this group, or correct modelSize"
        )
    missing = space.needed - observed.stock.incoming.get(key, 0)
    if missing > observed.stock.free:
        return (
            f"the model takes another {amount(missing)}, but the disk of node {node} has {amount(observed.stock.free)} "
            "left: delete a cache of this node, or give it a larger disk"
        )
    return ""


def misplacement(group: LocalModelNodeGroup | None, observed: Observed) -> str:
    """Says that the volumes of a group are another folder than the one that this program looks after."""
    host_path = observed.place.host_path
    volume = group.spec.persistent_volume_spec if group is not None else {}
    path = dig(volume, "hostPath", "path") or dig(volume, "local", "path")
    if group is None or not host_path or not path or path.rstrip("/") == host_path.rstrip("/"):
        return ""
    name = group.metadata.name
    return (
        f"the volume of LocalModelNodeGroup {name} is {path}, but the program on node {observed.name} keeps models in "
        f"{host_path}: give both the same path"
    )


def storage_report(observed: Observed) -> Mapping[str, GroupStorage]:
    """Returns how full the disk is, for each group through which the node has models."""
    report: dict[str, GroupStorage] = {}
    used = Counter[str]()
    for key, model in observed.by_key.items():
        receipt = observed.stock.complete.get(key)
        size = receipt.bytes if receipt is not None else observed.stock.incoming.get(key, 0)
        used[observed.group_of(model)] += size
    for group, count in used.items():
        if group in observed.groups:
            limit = observed.limit_of(group)
            free = observed.stock.free if limit is None else min(observed.stock.free, max(limit - count, 0))
            report[group] = GroupStorage(used=count, available=free, limit=limit)
    return report


def amount(count: int) -> str:
    """Returns bytes as people write them: in the largest unit that leaves at least two digits."""
    for exponent, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if count >= 10 * 1024**exponent:
            return f"{count / 1024**exponent:.1f}{unit}"
    return str(Quantity(count * 10**9, Notation.DECIMAL))

"""What becomes of a Deployment's ReplicaSets when its size changes, above all in the middle of a rollout.

Then every ReplicaSet keeps its share, as kube-controller-manager has it: a new version that does not come up must not
get all the new replicas.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from isvc.kube.objects import Object, annotations_of, creation_time_of, name_of
from isvc.kube.pods import replicas_of
from isvc.local.controllers.rollout import DESIRED, MAXIMUM, Limits, available_of, revision_of


def is_resized(limits: Limits, replica_sets: Sequence[Object]) -> bool:
    """Returns whether the Deployment was scaled since its ReplicaSets were last looked at."""
    sizes = [annotations_of(item).get(DESIRED) for item in replica_sets if replicas_of(item)]
    return any(size is not None and size != str(limits.replicas) for size in sizes)


def resize(limits: Limits, new: Object | None, replica_sets: Sequence[Object]) -> dict[str, int]:
    """Returns the sizes of ReplicaSets by name, where they are concerned."""
    active = [item for item in replica_sets if replicas_of(item)]
    if len(active) <= 1:
        only = active[0] if active else new or max(replica_sets, key=revision_of, default=None)
        return {name_of(only): limits.replicas} if only else {}
    if new is not None and replicas_of(new) == available_of(new) == limits.replicas:
        return {name_of(item): limits.replicas if name_of(item) == name_of(new) else 0 for item in active}
    return _shares(limits, active)


def _shares(limits: Limits, active: Sequence[Object]) -> dict[str, int]:
    sizes = {name_of(item): replicas_of(item) for item in active}
    allowed = limits.maximum if limits.replicas else 0
    left = allowed - sum(sizes.values())
    grows = left > 0
    by_age = sorted(active, key=creation_time_of, reverse=grows)
    largest_first = sorted(by_age, key=replicas_of, reverse=True)
    for item in largest_first:
        share = _share(limits, item) if left else 0
        step = min(share, left) if grows else max(share, left)
        sizes[name_of(item)] += step
        left -= step
    first = name_of(largest_first[0])
    sizes[first] = max(0, sizes[first] + left)
    return sizes


def _share(limits: Limits, item: Object) -> int:
    """Returns by how much one ReplicaSet would grow (or shrink) if all kept their proportions."""
    size, before = replicas_of(item), annotations_of(item).get(MAXIMUM, "")
    if not limits.replicas:
        return -size
    if not before.isdigit() or before == "0":
        return 0
    return math.floor(size * limits.maximum / int(before) + 0.5) - size

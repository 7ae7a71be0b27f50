"""How a Deployment rolls out, as arithmetic: which ReplicaSet gets how many replicas next.

The rules are kube-controller-manager's: never more than replicas + maxSurge pods, never fewer than replicas −
maxUnavailable available ones, unhealthy old pods go first.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import orjson

from isvc.kube.objects import (
    LAST_APPLIED,
    Object,
    annotations_of,
    creation_time_of,
    deep_copy,
    dig,
    name_of,
    namespace_of,
)
from isvc.kube.pods import replicas_of
from isvc.kube.resource import REPLICA_SETS

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"

_SAFE = "bcdfghjklmnpqrstvwxz2456789"
_NOT_COPIED = {LAST_APPLIED, REVISION, DESIRED, MAXIMUM,
               "deployment.kubernetes.io/revision-history", "deprecated.deployment.rollback.to"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """What a rolling update may do, in pods."""

    replicas: int
    surge: int
    unavailable: int

    @classmethod
    def of(cls, deployment: Object) -> Limits:
        replicas = replicas_of(deployment)
        if dig(deployment, "spec", "strategy", "type") == "Recreate":
            return cls(replicas, 0, 0)
        rolling = dig(deployment, "spec", "strategy", "rollingUpdate") or {}
        surge = share(rolling.get("maxSurge", "25%"), replicas, up=True)
        unavailable = share(rolling.get("maxUnavailable", "25%"), replicas, up=False)
        if not surge and not unavailable:
            unavailable = 1  # percentages may both round to nothing
        return cls(replicas, surge, min(unavailable, replicas))

    @property
    def maximum(self) -> int:
        return self.replicas + self.surge

    @property
    def minimum(self) -> int:
        return self.replicas - self.unavailable


def share(value: int | str, total: int, *, up: bool) -> int:
    """Returns an absolute number, or a percentage of the total."""
    if isinstance(value, str) and value.endswith("%"):
        exact = int(value[:-1]) * total / 100
        return math.ceil(exact) if up else math.floor(exact)
    return int(value)


def available_of(replica_set: Object) -> int:
    return int(dig(replica_set, "status", "availableReplicas") or 0)


def sum_status(replica_sets: Sequence[Object], field: str) -> int:
    return sum(int(dig(item, "status", field) or 0) for item in replica_sets)


def new_size(limits: Limits, new: Object, others: Sequence[Object]) -> int:
    """Returns how large the new ReplicaSet may be now."""
    current, wanted = replicas_of(new), limits.replicas
    if current >= wanted:
        return wanted
    room = limits.maximum - current - sum(replicas_of(item) for item in others)
    return current + max(0, min(room, wanted - current))


def old_sizes(limits: Limits, new: Object, old: Sequence[Object]) -> dict[str, int]:
    """Returns new sizes of old ReplicaSets, by name, where they change."""
    sizes = {name_of(item): replicas_of(item) for item in old}
    total = sum(sizes.values()) + replicas_of(new)
    unready_new = replicas_of(new) - available_of(new)
    budget = total - limits.minimum - unready_new
    if budget <= 0:
        return {}
    oldest_first = sorted(old, key=creation_time_of)
    changed: dict[str, int] = {}
    for item in oldest_first:  # unhealthy pods first: they serve no requests
        unhealthy = sizes[name_of(item)] - available_of(item)
        step = min(budget, max(0, unhealthy))
        if step:
            changed[name_of(item)] = sizes[name_of(item)] = sizes[name_of(item)] - step
            budget -= step
    spare = available_of(new) + sum(available_of(item) for item in old) - limits.minimum
    for item in oldest_first:
        step = min(spare, sizes[name_of(item)])
        if step > 0:
            changed[name_of(item)] = sizes[name_of(item)] = sizes[name_of(item)] - step
            spare -= step
    return changed


# -- templates and revisions ------------------------------------------------------------------------------------------


def template_hash(template: Object) -> str:
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:10])


def bare_template(replica_set: Object) -> Object:
    """Returns a ReplicaSet's pod template without the label that is its own."""
    template = deep_copy(dig(replica_set, "spec", "template") or {})
    labels = dig(template, "metadata", "labels")
    if labels:
        labels.pop(HASH_LABEL, None)
    return template


def find_new(deployment: Object, replica_sets: Sequence[Object]) -> Object | None:
    """Returns the oldest ReplicaSet with the Deployment's template."""
    wanted = _normal(dig(deployment, "spec", "template") or {})
    same = [item for item in replica_sets if _normal(bare_template(item)) == wanted]
    return min(same, key=creation_time_of, default=None)


def _normal(template: Object) -> bytes:
    metadata = {k: v for k, v in (template.get("metadata") or {}).items() if v and k != "creationTimestamp"}
    return orjson.dumps({**template, "metadata": metadata}, option=orjson.OPT_SORT_KEYS)


def revision_of(obj: Object) -> int:
    text = annotations_of(obj).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def inherited_annotations(deployment: Object) -> dict[str, str]:
    return {key: value for key, value in annotations_of(deployment).items() if key not in _NOT_COPIED}


def scale_annotations(limits: Limits) -> dict[str, str]:
    return {DESIRED: str(limits.replicas), MAXIMUM: str(limits.maximum)}


def new_replica_set(deployment: Object, limits: Limits, revision: int, owner: Object) -> Object:
    template = deep_copy(dig(deployment, "spec", "template") or {})
    value = template_hash(template)
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), HASH_LABEL: value}
    selector = deep_copy(dig(deployment, "spec", "selector") or {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: value}
    spec: Object = {"replicas": 0, "selector": selector, "template": template}
    if seconds := dig(deployment, "spec", "minReadySeconds"):
        spec["minReadySeconds"] = seconds
    named = {
        "name": f"{name_of(deployment)}-{value}",
        "namespace": namespace_of(deployment),
        "labels": metadata["labels"],
        "annotations": {**inherited_annotations(deployment), **scale_annotations(limits), REVISION: str(revision)},
        "ownerReferences": [owner],
    }
    return REPLICA_SETS.manifest(named, spec=spec)

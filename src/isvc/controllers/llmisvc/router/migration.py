"""Which API group of inference pools a managed route uses.

A route starts with pools of the older group. It moves to the newer one when its gateway does not know the older, or
has already accepted the newer, and never moves back: an annotation on the route remembers.
"""

from __future__ import annotations

from typing import Final

from isvc.controllers.llmisvc.router.backends import POOL, backends
from isvc.controllers.llmisvc.router.readiness import is_same_parent
from isvc.kube.conditions import find
from isvc.kube.objects import Object, annotations_of, dig, namespace_of
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

ANNOTATION: Final = "serving.kserve.io/inference-pool-migrated"
MIGRATED: Final = "v1"


def is_migrated(route: Object | None) -> bool:
    if route is None:
        return False
    return (
        annotations_of(route).get(ANNOTATION) == MIGRATED
        or (_uses(route, INFERENCE_POOLS.group) and _is_supported(route) is True)
        or (_uses(route, INFERENCE_POOLS_V1ALPHA2.group) and _is_supported(route) is False)
    )


def _uses(route: Object, group: str) -> bool:
    return any(backend.get("group") == group and backend.get("kind") == POOL for backend in backends(route))


def _is_supported(route: Object) -> bool | None:
    """Returns whether the route's gateway knows the kind of its backends; None while no gateway says."""
    specified, namespace = dig(route, "spec", "parentRefs") or (), namespace_of(route)
    refused = False
    for parent in dig(route, "status", "parents") or ():
        reference = parent.get("parentRef") or {}
        if specified and not any(is_same_parent(each, reference, namespace) for each in specified):
            continue
        resolved = find(parent.get("conditions") or (), "ResolvedRefs")
        if resolved is None:
            continue
        if resolved.get("status") == "False" and resolved.get("reason") == "InvalidKind":
            refused = True
            continue
        return True
    return False if refused else None

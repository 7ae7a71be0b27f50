"""The HTTPRoute that the controller makes for a service, and the API group of inference pools that it uses.

A route starts with pools of the older group. It moves to the newer one when its gateway does not know the older, or
has already accepted the newer, and never moves back: an annotation on the route remembers.
"""

from __future__ import annotations

from typing import Final

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.router.backends import POOL, backends, edit_pool_backends
from isvc.controllers.llmisvc.router.group import Group, share_traffic
from isvc.controllers.llmisvc.router.model_routing import with_model_routing
from isvc.controllers.llmisvc.router.readiness import is_same_parent
from isvc.engine.plan import Child
from isvc.kube.conditions import find
from isvc.kube.objects import Object, annotations_of, dig, namespace_of
from isvc.serving.llm import labels, names
from isvc.serving.thirdparty import HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2

MIGRATION: Final = "serving.kserve.io/inference-pool-migrated"
MIGRATED: Final = "v1"


def managed_route(observed: Observed, wanted: Object, group: Group | None) -> Child:
    """Returns the route that the merged spec has, fit for what its gateway knows and for the group it belongs to."""
    name = names.route(observed.name)
    spec = with_model_routing(wanted, observed)
    metadata: Object = {"name": name, "namespace": observed.namespace, "labels": _labels(observed)}
    if observed.scheduler is not None and not observed.users_pool:
        migrated = is_migrated(observed.live.get((HTTP_ROUTES, name)))
        pools = INFERENCE_POOLS if migrated else INFERENCE_POOLS_V1ALPHA2
        spec = edit_pool_backends(spec, observed.name, {"group": pools.group})
        if migrated:
            metadata["annotations"] = {MIGRATION: MIGRATED}
    if group is not None:
        spec = share_traffic(spec, group, observed)
    return Child(HTTP_ROUTES, HTTP_ROUTES.manifest(metadata, spec=spec))


def _labels(observed: Observed) -> dict[str, str]:
    ours = labels.labels(observed.name, labels.ROUTER)
    group = observed.route.group if observed.route else None
    return {**ours, labels.ROUTING_GROUP: group} if group is not None else ours


def is_migrated(route: Object | None) -> bool:
    if route is None:
        return False
    return (
        annotations_of(route).get(MIGRATION) == MIGRATED
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

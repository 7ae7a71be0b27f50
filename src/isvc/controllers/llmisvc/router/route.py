"""The HTTPRoute that the controller makes for a service."""

from __future__ import annotations

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.router import migration
from isvc.controllers.llmisvc.router.backends import edit_pool_backends
from isvc.controllers.llmisvc.router.group import Group, share_traffic
from isvc.controllers.llmisvc.router.model_routing import with_model_routing
from isvc.engine.plan import Child
from isvc.kube.objects import Object
from isvc.serving.llm import labels, names
from isvc.serving.thirdparty import HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2


def managed_route(observed: Observed, wanted: Object, group: Group | None) -> Child:
    """Returns the route that the merged spec has, fit for what its gateway knows and for the group it belongs to."""
    name = names.route(observed.name)
    spec = with_model_routing(wanted, observed)
    metadata: Object = {"name": name, "namespace": observed.namespace, "labels": _labels(observed)}
    if observed.scheduler is not None and not observed.users_pool:
        migrated = migration.is_migrated(observed.live.get((HTTP_ROUTES, name)))
        pools = INFERENCE_POOLS if migrated else INFERENCE_POOLS_V1ALPHA2
        spec = edit_pool_backends(spec, observed.name, {"group": pools.group})
        if migrated:
            metadata["annotations"] = {migration.ANNOTATION: migration.MIGRATED}
    if group is not None:
        spec = share_traffic(spec, group, observed)
    manifest = {"apiVersion": HTTP_ROUTES.api_version, "kind": HTTP_ROUTES.kind, "metadata": metadata, "spec": spec}
    return Child(HTTP_ROUTES, manifest)


def _labels(observed: Observed) -> dict[str, str]:
    ours = labels.labels(observed.name, labels.ROUTER)
    group = observed.route.group if observed.route else None
    return {**ours, labels.ROUTING_GROUP: group} if group is not None else ours

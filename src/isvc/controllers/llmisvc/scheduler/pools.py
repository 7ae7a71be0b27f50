"""Inference pools: the pods among which the endpoint picker chooses, in both API groups that gateways may know.

They have the same name and say the same; the route decides which of them is used.
"""

from __future__ import annotations

from collections.abc import Iterator

from isvc.api.llm.conversion import pool_from_v1
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.metadata import child_metadata
from isvc.controllers.llmisvc.workload.steps import require
from isvc.controllers.llmisvc.workload.waking import ask_always, wakes_on_request
from isvc.engine.plan import Child
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.serving.llm import labels, names
from isvc.serving.thirdparty import INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2


def pools(observed: Observed) -> Iterator[Child]:
    """Raises `Refused` in a cluster that does not have the newer ones."""
    pool = observed.scheduler.pool if observed.scheduler else None
    spec = (pool and pool.spec) or {}
    if wakes_on_request(observed):
        spec = ask_always(spec)
    require(observed, INFERENCE_POOLS, names.inference_pool(observed.name))
    yield _pool(observed, INFERENCE_POOLS, spec)
    if INFERENCE_POOLS_V1ALPHA2 in observed.served:
        yield _pool(observed, INFERENCE_POOLS_V1ALPHA2, pool_from_v1(spec))


def _pool(observed: Observed, resource: Resource, spec: Object) -> Child:
    given = labels.labels(observed.name, labels.SCHEDULER)
    metadata = child_metadata(observed, names.inference_pool(observed.name), given)
    return Child(resource, resource.manifest(metadata, spec=spec))

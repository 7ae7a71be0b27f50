"""How long a service is left alone after one of its children has reported.

They become ready one after the other: workloads, pools, the route. What a service says of itself follows from all of
them, so one that still waits for some is looked at seldom, and at once when the last of them has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.kube.conditions import is_condition_true
from isvc.kube.objects import Key, Object, dig, uid_of
from isvc.kube.readiness import is_ready
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.serving.thirdparty import HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2, LEADER_WORKER_SETS
from isvc.toolkit.cache import OWNER, Reader

TOGETHER: Final = 0.2  # for changes that come one after the other, whatever they are
MORE_TO_COME: Final = 1.0  # while a child has yet to become ready


def delay_by_children(reader: Reader) -> Callable[[Key], float]:
    """Returns what says how many seconds a service waits after a change of a child."""

    def delay(key: Key) -> float:
        service = reader.get(LLM_INFERENCE_SERVICES, key.name, key.namespace)
        if service is None or is_ready(service):
            return TOGETHER
        reported = list(_reported(reader, uid_of(service)))
        return TOGETHER if not reported else 0.0 if all(reported) else MORE_TO_COME

    return delay


def _reported(reader: Reader, service: str) -> Iterator[bool]:
    """Yields of each child that has to become ready whether it has; of a pool in two API groups one is enough."""

    def children(resource: Resource) -> list[Object]:
        return reader.by_index(resource, OWNER, service) if reader.serves(resource) else []

    for resource in (DEPLOYMENTS, LEADER_WORKER_SETS):
        for workload in children(resource):
            yield is_condition_true(workload, "Available")
    for route in children(HTTP_ROUTES):
        yield bool(dig(route, "status", "parents"))
    pools = [*children(INFERENCE_POOLS), *children(INFERENCE_POOLS_V1ALPHA2)]
    if pools:
        yield any(dig(pool, "status", "parents") or dig(pool, "status", "parent") for pool in pools)

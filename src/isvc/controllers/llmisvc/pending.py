"""How long a service is left alone after one of its children has reported.

They become ready one after the other: workloads, pools, the route. What a service says of itself follows from all of
them, so one that still waits for some is looked at seldom, and at once when the last of them has come. Indexes hold
those that are waited for: to read all children of a service anew with each of their changes would cost more than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.kube.conditions import is_condition_true
from isvc.kube.objects import Key, Object, dig, namespace_of, uid_of
from isvc.kube.owners import controller_of
from isvc.kube.readiness import is_ready
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.serving.llm.labels import OURS
from isvc.serving.thirdparty import HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2, LEADER_WORKER_SETS
from isvc.toolkit.cache import OWNER, Reader
from isvc.toolkit.reads import Read

TOGETHER: Final = 0.2  # for changes that come one after the other, whatever they are
MORE_TO_COME: Final = 1.0  # while a child has yet to become ready

_UNREADY: Final = "unready"  # services that are not ready, by their own names
_AWAITED: Final = "awaited"  # children that have not reported, by the names of their services


def _is_available(workload: Object) -> bool:
    return is_condition_true(workload, "Available")


def _has_parents(obj: Object) -> bool:
    return bool(dig(obj, "status", "parents") or dig(obj, "status", "parent"))


def _unready(service: Object) -> Iterable[str]:
    return () if is_ready(service) else (str(Key.of(service)),)


def _awaited(has_reported: Callable[[Object], bool], child: Object) -> Iterable[str]:
    owner = controller_of(child)
    return () if owner is None or has_reported(child) else (str(Key(namespace_of(child), str(owner.get("name")))),)


_POOLS: Final = (INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2)  # of one in both API groups the report of one is enough
_OTHERS: Final = (DEPLOYMENTS, LEADER_WORKER_SETS, HTTP_ROUTES)
_WORKLOADS: Final = {_AWAITED: partial(_awaited, _is_available)}
_NETWORK: Final = {_AWAITED: partial(_awaited, _has_parents)}

READS: Final = (
    Read(LLM_INFERENCE_SERVICES, indexers={_UNREADY: _unready}),
    Read(DEPLOYMENTS, labels=OURS, indexers=_WORKLOADS),
    Read(LEADER_WORKER_SETS, optional=True, indexers=_WORKLOADS),
    *(Read(resource, optional=True, indexers=_NETWORK) for resource in (HTTP_ROUTES, *_POOLS)),
)


def delay_by_children(reader: Reader) -> Callable[[Key], float]:
    """Returns what says how many seconds a service waits after a change of a child."""

    def count(resources: Iterable[Resource], index: str, value: str) -> int:
        return sum(len(reader.keys(each, index, value)) for each in resources if reader.serves(each))

    def delay(key: Key) -> float:
        name = str(key)
        if not reader.keys(LLM_INFERENCE_SERVICES, _UNREADY, name):
            return TOGETHER
        if count(_OTHERS, _AWAITED, name):
            return MORE_TO_COME
        service = reader.get(LLM_INFERENCE_SERVICES, key.name, key.namespace)
        uid = uid_of(service or {})
        pools, others = count(_POOLS, OWNER, uid), count(_OTHERS, OWNER, uid)
        if pools and count(_POOLS, _AWAITED, name) == pools:
            return MORE_TO_COME
        return 0.0 if pools or others else TOGETHER

    return delay

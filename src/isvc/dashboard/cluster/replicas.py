"""How many replicas services have had, and which share of requests their canaries got, since the view was opened.

What informers bring fills it: nothing is polled. Of each service the latest changes are kept, of one that is deleted
none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Final

from isvc.dashboard.views.figures import Replicas
from isvc.dashboard.views.rows import Place
from isvc.insight.diagnosis.pods import named_services, pods_of
from isvc.insight.diagnosis.snapshot import SERVICE_OF_POD
from isvc.insight.operations import kinds
from isvc.insight.operations.edits import canary_share
from isvc.kube.conditions import is_condition_true
from isvc.kube.objects import Object, dig, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_of
from isvc.kube.resource import DEPLOYMENTS, PODS
from isvc.toolkit.cache import OWNER, Cache
from isvc.toolkit.clock import Clock

MOST_CHANGES: Final = 100  # of one service
SETTLE: Final = 0.5  # seconds in which several changes become one
AT_ONCE: Final = 20  # services that are counted before pages are answered again
_KINDS: Final = {resource.kind: short for resource, short in kinds.SHORT.items()}


class ReplicaHistory:
    def __init__(self, cache: Cache, clock: Clock) -> None:
        self._cache, self._clock = cache, clock
        self._changes: dict[Place, deque[Replicas]] = {}
        self._due: dict[Place, None] = {}
        self._wake = asyncio.Event()

    def of(self, place: Place) -> list[Replicas]:
        """Returns the counts of a service, the earliest first."""
        return list(self._changes.get(place, ()))

    def count_later(self, places: Iterable[Place]) -> None:
        """Counts these services again: something that they consist of has changed."""
        for place in places:
            self._due[place] = None
            self._wake.set()

    def forget(self, place: Place) -> None:
        self._changes.pop(place, None)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            await self._clock.sleep(SETTLE)
            self._wake.clear()
            due, self._due = list(self._due), {}
            for number, place in enumerate(due):
                self._count(place)
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _count(self, place: Place) -> None:
        resource = kinds.resource_called(place.kind)
        service = self._cache.get(resource, place.name, place.namespace) if resource else None
        if service is None:
            return
        changes = self._changes.setdefault(place, deque(maxlen=MOST_CHANGES))
        found = replicas(self._cache, service, self._clock.monotonic())
        if not changes or changes[-1][1:] != found[1:]:
            changes.append(found)


def replicas(cache: Cache, service: Object, now: float) -> Replicas:
    pods = pods_of_service(cache, service)
    deployments = cache.by_index(DEPLOYMENTS, OWNER, uid_of(service))
    wanted = sum(dig(each, "spec", "replicas") or 0 for each in deployments) if deployments else len(pods)
    return Replicas(now, wanted, sum(is_condition_true(pod, "Ready") for pod in pods), canary_share(service))


def pods_of_service(cache: Cache, service: Object) -> list[Object]:
    """Returns the service's pods, the newest first."""
    named = cache.by_index(PODS, SERVICE_OF_POD, name_of(service))
    return pods_of(service, (pod for pod in named if namespace_of(pod) == namespace_of(service)))


def services_of_pod(pod: Object) -> list[Place]:
    """Returns the services that a pod's labels name. Which kind a name is of, counting finds out."""
    return [Place(kind, namespace_of(pod), name) for name in named_services(pod) for kind in _KINDS.values()]


def service_of_deployment(deployment: Object) -> list[Place]:
    owner = controller_of(deployment) or {}
    kind = _KINDS.get(str(owner.get("kind")))
    return [Place(kind, namespace_of(deployment), str(owner.get("name")))] if kind else []

"""Services and InferencePools that say they are ready because the last `isvc up` was killed: their pods start again.

Requests for them wait in the gateway until one of the pods is back, as they do for what sleeps: who starts `isvc up`
and asks for a prediction gets it. Where all pods fail, or none is back in a minute, requests are answered with the
reason. An `isvc up` that was stopped has said what is not ready any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from isvc.kube.objects import Key, Object, dig, labels_of, namespace_of
from isvc.kube.pods import is_failing
from isvc.kube.resource import ENDPOINT_SLICES, PODS, SERVICES
from isvc.local.controllers.pods import is_active, is_ready
from isvc.local.controllers.selection import LABELS, SELECTOR, pods_with_labels, services_selecting
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.endpoints.pools import POOLS_BY_GROUP, candidates, labels_of_members
from isvc.local.gateway.endpoints.services import SERVICE_OF_SLICE, ports, service_of_slice, slice_endpoints
from isvc.local.gateway.routes.rules import Target
from isvc.local.knative.activator import Activator, Line
from isvc.toolkit.cache import Cache
from isvc.toolkit.reads import Read

WITHIN: Final = 60.0  # seconds


class _Awaited(NamedTuple):
    """The line of a Service, the name of its port, and the endpoints that it had when `isvc up` ended."""

    line: Line
    port: str
    before: frozenset[Endpoint]


class Returning:
    def __init__(self, cache: Cache, activator: Activator) -> None:
        self._cache, self._activator = cache, activator
        self._from_before: dict[Key, Object] | None = {}  # slices as they were found, until it is begun
        self._ready_before: list[Object] = []  # pods, of which nothing is kept but their labels
        self._failing_early: list[Object] = []  # pods that failed before it is begun
        self._awaited: dict[Key, _Awaited] = {}
        self._pools: dict[Target, Line] = {}
        pools = (Read(resource, optional=True) for resource in POOLS_BY_GROUP.values())
        slices = Read(ENDPOINT_SLICES, indexers={SERVICE_OF_SLICE: service_of_slice})
        cache.declare("returning", slices, Read(SERVICES, indexers=SELECTOR), Read(PODS, indexers=LABELS), *pools)
        cache.subscribe(ENDPOINT_SLICES, self._slice_changed)
        cache.subscribe(PODS, self._pod_changed)

    def begin(self) -> None:
        """Has requests wait, now that all is known that there was before."""
        found, self._from_before = self._from_before or {}, None
        slices: dict[str, list[Object]] = {}
        for each in found.values():
            for service in service_of_slice(each):
                slices.setdefault(service, []).append(each)
        for service, its_slices in slices.items():
            self._await(Key(*service.split("/")), its_slices)
        for resource in POOLS_BY_GROUP.values():
            for pool in self._cache.list(resource) if self._cache.serves(resource) else ():
                self._await_pool(Target(Key.of(pool), resource), pool)
        self._ready_before.clear()
        for pod in self._failing_early:
            self._look_at_failing(pod)
        self._failing_early.clear()
        asyncio.get_running_loop().call_later(WITHIN, self._give_up)

    def _await(self, key: Key, slices: Iterable[Object]) -> None:
        service = self._cache.get(SERVICES, key.name, key.namespace)
        if service is None or self._activator.line(Target(key)) is not None:
            return
        for port in ports(service):
            if before := _ready(slices, port.name):
                line = self._activator.open_line(key, port.number, lambda _: None)
                line.timeout = WITHIN
                self._awaited[key] = _Awaited(line, port.name, before)
                self._look(key)  # it may be back already
                return

    def _await_pool(self, target: Target, pool: Object) -> None:
        """Has requests wait that find no member; those that find one do not wait, so the line stays for its time."""
        pods = (pod for pod in self._ready_before if namespace_of(pod) == target.key.namespace)
        if candidates(pods, pool) and self._activator.line(target) is None:
            self._pools[target] = self._activator.open_pool(target, lambda _: None)
            self._pools[target].timeout = WITHIN

    def _pod_changed(self, before: Object | None, after: Object | None) -> None:
        is_early, is_new = self._from_before is not None, before is None
        if after is not None and is_active(after) and is_failing(after):
            if is_early:
                self._failing_early.append(after)
            else:
                self._look_at_failing(after)
        elif after is not None and is_early and is_new and is_ready(after):
            self._ready_before.append({"metadata": {"namespace": namespace_of(after), "labels": labels_of(after)}})

    def _look_at_failing(self, pod: Object) -> None:
        """Gives up on those who have no other pods than such that fail."""
        namespace = namespace_of(pod)
        for service in services_selecting(self._cache, pod):
            if (key := Key.of(service)) in self._awaited:
                pods = pods_with_labels(self._cache, namespace, dig(service, "spec", "selector"))
                if _all_fail(pods):
                    self._fail(Target(key), self._awaited.pop(key).line)
        for target in [target for target in self._pools if target.key.namespace == namespace]:
            pool = self._cache.get(target.pool, target.key.name, namespace) if target.pool else None
            if pool is not None and candidates([pod], pool):
                pods = pods_with_labels(self._cache, namespace, labels_of_members(pool))
                if _all_fail(candidates(pods, pool)):
                    self._fail(target, self._pools.pop(target))

    def _fail(self, target: Target, line: Line) -> None:
        self._close(target, line)
        line.give_up(f"all pods of {target.key} fail", has_waited=True)

    def _slice_changed(self, before: Object | None, after: Object | None) -> None:
        if self._from_before is not None:
            if before is None and after is not None:
                self._from_before.setdefault(Key.of(after), after)
            return
        for service in service_of_slice(after or before or {"metadata": {}}):
            if (key := Key(*service.split("/"))) in self._awaited:
                self._look(key)

    def _look(self, key: Key) -> None:
        """Lets requests go to a Service by themselves that has other endpoints than before."""
        awaited = self._awaited[key]
        ready = _ready(self._cache.by_index(ENDPOINT_SLICES, SERVICE_OF_SLICE, str(key)), awaited.port)
        if ready - awaited.before:
            self._close(Target(key), self._awaited.pop(key).line)

    def _close(self, target: Target, line: Line) -> None:
        if self._activator.line(target) is line:  # else it may sleep, and has another now
            self._activator.close_line(target)

    def _give_up(self) -> None:
        opened = {Target(key): awaited.line for key, awaited in self._awaited.items()} | self._pools
        self._awaited.clear()
        self._pools.clear()
        for target, line in opened.items():
            self._close(target, line)


def _all_fail(pods: Iterable[Object]) -> bool:
    return all(is_failing(pod) for pod in pods if is_active(pod))


def _ready(slices: Iterable[Object], port: str) -> frozenset[Endpoint]:
    return frozenset(endpoint for endpoint, takes_requests in slice_endpoints(slices, port) if takes_requests)

"""What one user sees of a cluster: a client, a cache of what pages show, and one row for each service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from isvc.dashboard.cluster.causes import Causes
from isvc.dashboard.cluster.reachability import Reachability
from isvc.dashboard.cluster.replicas import ReplicaHistory, service_of_deployment, services_of_pod
from isvc.dashboard.cluster.scope import Scope
from isvc.dashboard.views.overview import Overview, Question, overview
from isvc.dashboard.views.rows import Place, Row, row
from isvc.insight.diagnosis.dry_runs import DryRuns
from isvc.insight.diagnosis.evidence import Evidence
from isvc.insight.diagnosis.gather import gather
from isvc.insight.diagnosis.snapshot import of_service, reads
from isvc.insight.operations import kinds
from isvc.kube.objects import Object, namespace_of
from isvc.kube.resource import DEPLOYMENTS, PODS, Resource
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.failure import Unreachable
from isvc.toolkit.tasks import cancel

MOST_QUESTIONS: Final = 100  # whose answers are kept until something changes
FIRST_LOOK: Final = 30.0  # seconds
REMEMBER: Final = 300.0  # seconds for which it is known what the API server would make of a write


class Changes:
    """A count of changes. Waiters that are slow see several changes as one, so nothing is queued for them."""

    def __init__(self) -> None:
        self.count = 0
        self._next = asyncio.Event()

    def notify(self) -> None:
        self.count += 1
        woken, self._next = self._next, asyncio.Event()
        woken.set()

    async def since(self, count: int) -> int:
        """Waits until there are more changes than `count`; returns how many there are."""
        while self.count <= count:
            await self._next.wait()
        return self.count


class ClusterView:
    """Informers keep it current: a page is read from memory, and `changes` says when to look again."""

    def __init__(self, client: Client, scope: Scope) -> None:
        self.client, self.scope = client, scope
        self.clock: Final = SystemClock()
        self.reachability = Reachability(client, self.clock, self._everything_changed)
        self.cache = Cache(client, self.clock, on_lost=self.reachability.doubt)
        self.changes = Changes()  # of the rows
        self._overviews: dict[Question, Overview] = {}  # one for all readers who ask the same
        self._overviews_at = -1  # the count of changes that they were made after
        self._changes_in: dict[str, Changes] = {}
        self.rows: dict[Place, Row] = {}
        self.dry_runs = DryRuns(client, self.clock, REMEMBER)
        self.causes = Causes(self.evidence, self.service, self.clock, self._cause_found)
        self.replicas = ReplicaHistory(self.cache, self.clock)
        self._tasks: list[asyncio.Task[None]] = []
        declared = reads(scope.namespaces)
        self.cache.declare("dashboard", *declared)
        self._kinds = {read.resource for read in declared}
        for resource in self._kinds:
            if resource in kinds.ALL:
                self.cache.subscribe(resource, partial(self._service_changed, resource), before=False)
            elif resource.namespaced:
                self.cache.subscribe(resource, self._surroundings_changed, before=False)
        for resource, services in ((PODS, services_of_pod), (DEPLOYMENTS, service_of_deployment)):
            if resource in self._kinds:
                self.cache.subscribe(resource, partial(self._replicas_changed, services), before=False)

    async def start(self) -> None:
        """Raises ApiError or ClusterError if the cluster does not answer, or not to this user."""
        await self.client.server_version()
        self.cache.start()
        try:
            await asyncio.wait_for(self.cache.wait_for_sync(), FIRST_LOOK)
        except TimeoutError:
            raise Unreachable(f"{self.client.config.server} has not listed everything in {FIRST_LOOK:.0f} s") from None
        self._tasks = [
            asyncio.create_task(self.causes.run(), name="dashboard causes"),
            asyncio.create_task(self.replicas.run(), name="dashboard replicas"),
            asyncio.create_task(self.reachability.run(), name="dashboard reachability"),
        ]

    async def close(self) -> None:
        await cancel(*self._tasks)
        await self.cache.stop()

    def overview(self, question: Question) -> Overview:
        if self._overviews_at != self.changes.count:
            self._overviews, self._overviews_at = {}, self.changes.count
        found = self._overviews.get(question)
        if found is None:
            found = overview(self.rows.values(), question)
            if len(self._overviews) < MOST_QUESTIONS:
                self._overviews[question] = found
        self.causes.watch(each.place for each in found.rows)
        return found

    def service(self, place: Place) -> Object | None:
        resource = kinds.resource_called(place.kind)
        return self.cache.get(resource, place.name, place.namespace) if resource in self._kinds else None

    def changes_in(self, namespace: str) -> Changes:
        """Returns the count of changes of anything in a namespace."""
        return self._changes_in.setdefault(namespace, Changes())

    async def evidence(self, service: Object) -> Evidence:
        return await gather(self.client, service, of_service(self.cache, service), self.dry_runs)

    def forbidden_kinds(self) -> tuple[str, ...]:
        """Returns the kinds that this user may not read."""
        return tuple(sorted({kind.kind for kind in self._kinds if self.cache.forbids(kind)}))

    def _service_changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        place = Place.of(resource, after or before or {})
        self._notify(place.namespace)
        if after is None:
            self.rows.pop(place, None)
            self.causes.forget(place)
            self.replicas.forget(place)
            self.changes.notify()
        else:
            self.causes.diagnose_later(place.namespace)
            self.replicas.count_later([place])
            self._update(resource, place, after)

    def _surroundings_changed(self, before: Object | None, after: Object | None) -> None:
        namespace = namespace_of(after or before or {})
        self._notify(namespace)
        self.causes.diagnose_later(namespace)

    def _replicas_changed(
        self, services: Callable[[Object], list[Place]], before: Object | None, after: Object | None
    ) -> None:
        self.replicas.count_later(place for place in services(after or before or {}) if place in self.rows)

    def _everything_changed(self) -> None:
        for changes in (self.changes, *self._changes_in.values()):
            changes.notify()

    def _notify(self, namespace: str) -> None:
        if namespace in self._changes_in:
            self._changes_in[namespace].notify()

    def _cause_found(self, place: Place) -> None:
        resource, service = kinds.resource_called(place.kind), self.service(place)
        if resource and service:
            self._update(resource, place, service)

    def _update(self, resource: Resource, place: Place, service: Object) -> None:
        fresh = row(resource, service, self.causes.get(place))
        if self.rows.get(place) != fresh:
            self.rows[place] = fresh
            self.changes.notify()

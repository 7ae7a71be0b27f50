"""Runs the controllers of both managers on an API server in memory until nothing is left to do."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from isvc.api.resources import GROUP
from isvc.insight.simulation.admission import Admission
from isvc.insight.simulation.clock import SimulatedClock
from isvc.insight.simulation.platform import Platform
from isvc.insight.simulation.server import MemoryServer, Place
from isvc.kube.errors import ApiError
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.programs.cluster_manifests import PROGRAMS
from isvc.programs.options import Options
from isvc.programs.registration import WebhookContext
from isvc.programs.registration import reads as webhook_reads
from isvc.serving.knative_settings import DOMAIN_CONFIG
from isvc.serving.thirdparty import HTTP_ROUTES
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.client import Client
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller
from isvc.toolkit.recorder import EventRecorder

log = logging.getLogger(__name__)

KUBERNETES: Final = ("1", "35")
_MOST_ROUNDS: Final = 50  # of platform and controllers, each waiting for the other
_MOST_WAITS: Final = 3  # a controller that looks again in vain stops being asked
_LONGEST_WAIT: Final = 3600.0  # seconds; nobody asks about the renewal of a certificate in years


class Memory(MemoryReader):
    """The objects of a simulated cluster, as its controllers' cache: writes are in it already."""

    def note(self, resource: Resource, obj: Object, *, owner: Object | None = None) -> None:
        return


class Event(NamedTuple):
    """An event that a controller recorded about an object."""

    kind: str
    key: Key
    type: str
    reason: str
    message: str


class Events:
    """Keeps what controllers record."""

    def __init__(self) -> None:
        self.recorded: list[Event] = []

    def event(self, obj: Object, type: str, reason: str, message: str) -> None:  # noqa: A002 - Kubernetes' word
        self.recorded.append(Event(obj.get("kind", ""), Key.of(obj), type, reason, message))

    def for_component(self, source: str) -> EventRecorder:
        return self


class Change(NamedTuple):
    """A child before and after a controller wrote it; None where it does not exist."""

    owner: Place
    resource: Resource
    before: Object | None
    after: Object | None

    @property
    def place(self) -> Place:
        obj = self.after or self.before or {}
        return self.resource, namespace_of(obj), name_of(obj)


class Crash(NamedTuple):
    """A reconcile that raised."""

    controller: str
    key: Key
    error: Exception


class Simulation:
    """`absent` are kinds that the cluster does not serve. What `warn` is called with, `kubectl` would print."""

    def __init__(
        self,
        *,
        absent: Collection[Resource] = (),
        options: Options | None = None,
        clock: SimulatedClock | None = None,
        version: tuple[str, str] = KUBERNETES,
        warn: Callable[[str], None] = lambda warning: None,
    ) -> None:
        self.options = replace(options or Options(), revision_history_limit=0)  # of interest on a cluster alone
        self.clock = clock or SimulatedClock()
        self.objects = Memory(absent=absent)
        self.server = MemoryServer(self.objects, self.clock, version)
        self.client = Client(self.server)
        self.events = Events()
        self.crashes: list[Crash] = []
        self.changes: list[Change] = []
        self.server.admission = Admission(WebhookContext.of(self.objects, self.client, self.options), warn)
        context, environment = Context(self.client, self.objects, self.events, self.clock), self.options.environment
        self.controllers = [make(context, environment) for program in PROGRAMS for make in program.controllers]
        self._pending: dict[tuple[int, Key], None] = {}
        self._later: dict[tuple[int, Key], float] = {}
        self.reads = [read for controller in self.controllers for read in controller.reads]
        for program in PROGRAMS:
            self.reads += webhook_reads(program.webhooks, self.options.system_namespace)
        self.objects.declare(*self.reads)
        self.server.changed = self._changed

    # -- objects ----------------------------------------------------------------------------------------------------

    def seed(self, objects: Iterable[tuple[Resource, Object]]) -> None:
        """Puts objects in place as they are, versions included; no controller notices."""
        for resource, obj in objects:
            self.objects.put(resource, obj)

    async def apply(self, resource: Resource, obj: Object) -> Object:
        """Creates or replaces an object through admission; raises the `ApiError` that a client would get."""
        live = self.objects.get(resource, name_of(obj), namespace_of(obj))
        if live is None:
            return await self.client.create(resource, obj)
        metadata = {**obj["metadata"], "resourceVersion": live["metadata"].get("resourceVersion")}
        metadata.setdefault("finalizers", live["metadata"].get("finalizers") or [])
        return await self.client.update(resource, {**obj, "metadata": metadata})

    # -- running ----------------------------------------------------------------------------------------------------

    def enqueue(self, resource: Resource, obj: Object) -> None:
        """Reconciles what depends on the object, itself first of all."""
        self._changed(resource, None, obj)

    def enqueue_all(self) -> None:
        """Reconciles everything, as after a start."""
        for resource in {watch.resource for each in self.controllers for watch in each.watches if watch.to is None}:
            for obj in self.objects.list(resource):
                self.enqueue(resource, obj)

    async def settle(self) -> None:
        """Lets the controllers work until they have nothing left to do."""
        waits: dict[tuple[int, Key], int] = {}
        while self._pending or self._later:
            while self._pending:
                number, key = entry = next(iter(self._pending))
                del self._pending[entry]
                self._later.pop(entry, None)
                await self._reconcile(number, self.controllers[number], key)
            due = [
                each
                for each, pause in self._later.items()
                if pause <= _LONGEST_WAIT and waits.get(each, 0) < _MOST_WAITS
            ]
            if not due:
                self._later.clear()
                return
            self.clock.advance(max(self._later[each] for each in due))
            for each in due:
                waits[each] = waits.get(each, 0) + 1
                del self._later[each]
                self._pending[each] = None

    async def settle_ready(self, is_included: Callable[[Resource, Object], bool] = lambda resource, obj: True) -> None:
        """Does the same, while whatever they create becomes healthy."""
        for _ in range(_MOST_ROUNDS):
            await self.settle()
            platform = Platform(self._knative_domains(), self._gateways())
            if not self._make_healthy(platform, is_included):
                return
        log.warning("the controllers do not come to rest")

    def _make_healthy(self, platform: Platform, is_included: Callable[[Resource, Object], bool]) -> bool:
        changed = False
        for resource in platform.kinds:
            for obj in list(self.objects.list(resource)):
                status = platform.healthy(resource, obj)
                if is_included(resource, obj) and (obj.get("status") or {}) != status:
                    self.server.put(resource, {**obj, "metadata": dict(obj["metadata"]), "status": status})
                    changed = True
        return changed

    def _gateways(self) -> tuple[Object, ...]:
        """Returns the gateways that routes refer to."""
        parents = [
            {**parent, "namespace": parent.get("namespace") or namespace_of(route)}
            for route in self.objects.list(HTTP_ROUTES)
            for parent in dig(route, "spec", "parentRefs") or ()
        ]
        return tuple({(each["namespace"], each.get("name")): each for each in parents}.values())

    def _knative_domains(self) -> tuple[str, ...]:
        found = self.objects.get(CONFIG_MAPS, DOMAIN_CONFIG, self.options.knative_namespace) or {}
        return tuple(found.get("data") or ())

    def _changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        if (author := self.server.author) and resource.group != GROUP:
            self.changes.append(Change(author, resource, before, after))
        for number, controller in enumerate(self.controllers):
            for watch in controller.watches:
                if watch.resource == resource:
                    for key in watch.keys(before, after):
                        self._pending[number, key] = None

    async def _reconcile(self, number: int, controller: Controller, key: Key) -> None:
        self.server.author = (_reconciled_kind(controller), key.namespace, key.name)
        try:
            result = await controller.reconcile(key)
        except ApiError as error:
            self.crashes.append(Crash(controller.name, key, error))
            return
        finally:
            self.server.author = None
        if result is not None and result.requeue_after is not None:
            self._later[number, key] = result.requeue_after


def _reconciled_kind(controller: Controller) -> Resource:
    """Returns the kind that a controller reconciles: the one that it watches for its own sake."""
    return next(watch.resource for watch in controller.watches if watch.is_of_itself)

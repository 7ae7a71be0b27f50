"""Reconciling an InferenceGraph: observe, plan, apply, fold."""

from __future__ import annotations

import logging

from isvc.api.codec import DecodeError
from isvc.api.resources import INFERENCE_GRAPHS
from isvc.controllers.inferencegraph import status
from isvc.controllers.inferencegraph.observe import observe
from isvc.controllers.inferencegraph.observed import Observed
from isvc.controllers.inferencegraph.plan import KNATIVE_MISSING, plan
from isvc.engine.apply import Engine
from isvc.engine.commit import Commit
from isvc.engine.plan import Hold
from isvc.kube.conditions import FALSE, UNKNOWN
from isvc.kube.objects import Key, Object, is_being_deleted, name_of
from isvc.serving.config.current import Configuration
from isvc.serving.events import readiness_events
from isvc.serving.knative_settings import KnativeSettings
from isvc.toolkit.cache import Memory
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, timestamp
from isvc.toolkit.controller import Result
from isvc.toolkit.recorder import EventRecorder

log = logging.getLogger(__name__)

LOOK_FOR_KNATIVE = 5.0  # no watch reports that it was installed


class Reconciler:
    def __init__(
        self,
        client: Client,
        cache: Memory,
        recorder: EventRecorder,
        clock: Clock,
        configuration: Configuration,
        knative: KnativeSettings,
    ) -> None:
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._configuration = configuration
        self._knative = knative
        self._engine = Engine(client, cache)
        self._commit = Commit(client, cache)
        self._rejected: set[Key] = set()

    async def reconcile(self, key: Key) -> Result | None:
        config = self._configuration.in_force()
        if config is None:
            return self._configuration.wait(key)
        try:
            observed = await observe(self._cache, self._knative, config, key, timestamp(self._clock.now()))
        except DecodeError as error:
            await self._unreadable(key, error)
            return None
        if observed is None or is_being_deleted(observed.graph):
            self._rejected.discard(key)
            return None
        wanted = plan(observed)
        held = next((part.answer for part in wanted.parts if isinstance(part.answer, Hold)), None)
        if held is not None:
            return await self._wait(key, observed, held)
        self._rejected.discard(key)
        outcome = await self._engine.apply(observed.graph, wanted)
        if outcome.refusal is not None:
            self._recorder.event(observed.graph, "Warning", "InternalError", outcome.refusal.result.message)
        await self._write(observed.graph, status.fold(observed, outcome))
        return None

    async def _unreadable(self, key: Key, error: DecodeError) -> None:
        """Report a graph that is not of its type, or that leads to a service or runtime that is not."""
        graph = self._cache.get(INFERENCE_GRAPHS, key.name, key.namespace)
        if graph is not None:
            await self._write(graph, status.unreadable(graph, str(error), timestamp(self._clock.now())))

    async def _wait(self, key: Key, observed: Observed, held: Hold) -> Result | None:
        """Leave the router as it is and report what is missing; that Knative is missing is an event, too."""
        log.info("%s waits: %s", key, held.message)
        await self._write(observed.graph, status.waiting(observed.graph, held, observed.now))
        if held.reason != KNATIVE_MISSING:
            return None
        if key not in self._rejected:
            self._rejected.add(key)
            self._recorder.event(observed.graph, "Warning", held.reason, held.message)
        return Result(requeue_after=LOOK_FOR_KNATIVE)

    async def _write(self, graph: Object, after: Object) -> None:
        before: Object = graph.get("status") or {}
        if await self._commit.status(INFERENCE_GRAPHS, graph, after) is None:
            return
        for event in readiness_events(INFERENCE_GRAPHS.kind, name_of(graph), before, after, not_ready=(FALSE, UNKNOWN)):
            self._recorder.event(graph, *event)

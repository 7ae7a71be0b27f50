"""Reconciling an InferenceService: observe, plan, apply, fold."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from isvc.api.annotations import DISABLE_AUTO_UPDATE, FINALIZER
from isvc.api.codec import DecodeError
from isvc.api.modes import DeploymentMode
from isvc.api.resources import INFERENCE_SERVICES, TRAINED_MODELS
from isvc.controllers.inferenceservice.observe import Gatherer, Observer
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.planned import Planned, Stage, Stop
from isvc.controllers.inferenceservice.status.edit import READY
from isvc.controllers.inferenceservice.status.events import halt_events, update_events, virtual_host_events
from isvc.controllers.inferenceservice.status.fold import fold, halted, undecided, unplanned, unreadable
from isvc.controllers.inferenceservice.status.revisions import rolled_out
from isvc.engine.apply import Engine
from isvc.engine.commit import Commit
from isvc.engine.events import WARNING, Event, failing, readiness_events
from isvc.engine.outcome import Outcome
from isvc.kube.conditions import is_true
from isvc.kube.equality import equivalent
from isvc.kube.errors import ApiError
from isvc.kube.objects import Key, Object, dig, finalizers_of, is_being_deleted, labels_of, name_of, namespace_of
from isvc.serving.knative_settings import KnativeSettings
from isvc.serving.thirdparty import VIRTUAL_SERVICES
from isvc.toolkit.cache import Memory
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, timestamp
from isvc.toolkit.controller import Result
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.recorder import EventRecorder

AFTER_REPAIR: Final = 1.0  # who edits one child often edits another, without a watch that reports it
AFTER_REFUSAL: Final = 30.0  # a namesake may go away, or a quota grow, without a watch that reports it
RECOVERY: Final = 0.5
LOOK_FOR_KNATIVE: Final = 5.0
WAIT_FOR_MODEL_MESH: Final = 3.0


class Report(NamedTuple):
    """What a reconcile reports: the status to write, events, and when to reconcile again."""

    raw: Object
    status: Object
    events: tuple[Event, ...] = ()
    result: Result | None = None


class Reconciler:
    def __init__(
        self,
        client: Client,
        cache: Memory,
        recorder: EventRecorder,
        clock: Clock,
        system_namespace: str,
        knative: KnativeSettings,
    ) -> None:
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._observer = Observer(cache, system_namespace)
        self._gatherer = Gatherer(client, knative)
        self._engine = Engine(client, cache)
        self._commit = Commit(client, cache)
        self._recovering: dict[Key, float] = {}

    async def reconcile(self, key: Key) -> Result | None:
        try:
            answer = await self._converge(key)
        except (ApiError, ClusterError):
            raise
        except Exception as error:  # a bug of ours: reported as such, counted as a panic, and tried again
            await self._report_bug(key, error)
            raise
        if not isinstance(answer, Report):
            return answer
        await self._write(answer)
        return answer.result

    async def _converge(self, key: Key) -> Report | Result | None:
        """Everything but reporting. What was observed and planned is freed here: a status write may have to wait."""
        raw = self._cache.get(INFERENCE_SERVICES, key.name, key.namespace)
        if raw is None:
            return None
        if is_being_deleted(raw):
            await self._delete(raw)
            return None
        config = self._observer.configuration.in_force()
        if config is None:
            return self._observer.configuration.wait(key)
        try:
            observed = self._observer.observe(raw, config, timestamp(self._clock.now()))
        except DecodeError as error:
            return self._unreadable(raw, error)
        if observed.mode is DeploymentMode.MODEL_MESH and observed.service.spec.transformer is None:
            return Report(observed.raw, unplanned(observed))  # ModelMesh's own controller deploys it
        observed = await self._with_finalizer(observed)
        if _is_pinned(observed):
            return None
        if observed.mode is DeploymentMode.MODEL_MESH and not observed.predictor_url:
            return Result(requeue_after=WAIT_FOR_MODEL_MESH)
        observed, planned = await self._gatherer.gather(observed, plan)
        if planned.stop is not None and planned.stop.stage is Stage.MODE:
            return _mode_rejected(observed, planned.stop)
        if pause := self._pause(observed, planned):
            return Result(requeue_after=pause)
        outcome = await self._engine.apply(observed.raw, planned.plan)
        return _report(observed, planned, outcome)

    async def _write(self, report: Report) -> None:
        """Write the status if it changed, and events about what changed."""
        before: Object = report.raw.get("status") or {}
        await self._commit.status(INFERENCE_SERVICES, report.raw, report.status)
        because = failing(report.status)
        name = name_of(report.raw)
        ready = readiness_events(INFERENCE_SERVICES.kind, name, before, report.status, because=because)
        for event in (*report.events, *ready):
            self._recorder.event(report.raw, *event)

    # -- steps ------------------------------------------------------------------------------------------------------

    def _pause(self, observed: Observed, planned: Planned) -> float:
        """Seconds to wait before a service that could not be served is deployed after all.

        What was missing is often applied together with further edits; they are taken together.
        """
        key = Key.of(observed.raw)
        if planned.stop is not None or dig(observed.status, "modelStatus", "transitionStatus") != "InvalidSpec":
            self._recovering.pop(key, None)
            return 0.0
        now = self._clock.monotonic()
        return max(self._recovering.setdefault(key, now + RECOVERY) - now, 0.0)

    def _unreadable(self, raw: Object, error: DecodeError) -> Report:
        """A service that is not of its type, which only a cluster without our webhooks and schema accepts."""
        status = unreadable(raw, timestamp(self._clock.now()), str(error))
        known = equivalent(raw.get("status") or {}, status)
        return Report(raw, status, () if known else (Event(WARNING, "InvalidSpec", str(error)),))

    async def _report_bug(self, key: Key, error: Exception) -> None:
        raw = self._cache.get(INFERENCE_SERVICES, key.name, key.namespace)
        if raw is None:
            return
        message = f"the controller failed, which is no fault of the service: {type(error).__name__}: {error}"
        status = undecided(raw, timestamp(self._clock.now()), message)
        known = equivalent(raw.get("status") or {}, status)
        with suppress(ApiError, ClusterError):
            await self._write(Report(raw, status, () if known else (Event(WARNING, "InternalError", message),)))

    async def _with_finalizer(self, observed: Observed) -> Observed:
        owner = await self._commit.add_finalizer(INFERENCE_SERVICES, observed.raw, FINALIZER)
        return observed if owner is observed.raw else replace(observed, raw=owner)

    async def _delete(self, raw: Object) -> None:
        """The models that name this service go with it; children are the garbage collector's.

        Nothing but metadata is looked at: whatever else is wrong with a service, it can be deleted.
        """
        if FINALIZER not in finalizers_of(raw):
            return
        models = self._cache.list(TRAINED_MODELS, namespace_of(raw)) if self._cache.serves(TRAINED_MODELS) else []
        for model in models:
            if labels_of(model).get("inferenceservice") == name_of(raw):
                await self._commit.deletion(TRAINED_MODELS, model)
        await self._commit.remove_finalizer(INFERENCE_SERVICES, raw, FINALIZER)


def _report(observed: Observed, planned: Planned, outcome: Outcome) -> Report:
    before, status = observed.status, fold(observed, planned, outcome)
    missing = VIRTUAL_SERVICES not in observed.served and not observed.config.ingress.disable_istio_virtual_host
    events = (
        *halt_events(halted(planned, outcome)),
        *virtual_host_events(before, status, missing=missing),
        *update_events(observed.name, before, status),
    )
    result = None
    if rolled_out(before) != rolled_out(status):
        result = Result(requeue_after=0)  # the traffic split is planned from the status just written
    elif outcome.refusal is not None:
        result = Result(requeue_after=AFTER_REFUSAL)
    elif outcome.has_repaired:
        result = Result(requeue_after=AFTER_REPAIR)
    return Report(observed.raw, status, events, result)


def _mode_rejected(observed: Observed, stop: Stop) -> Report:
    """Reported once, and tried again in case Knative is installed later."""
    status = unplanned(observed, stop)
    events = () if status == observed.status else (Event(WARNING, "ServerlessModeRejected", stop.message),)
    return Report(observed.raw, status, events, Result(requeue_after=LOOK_FOR_KNATIVE))


def _is_pinned(observed: Observed) -> bool:
    """A ready service whose owner asked for no automatic updates."""
    conditions = observed.status.get("conditions") or ()
    return observed.annotations.get(DISABLE_AUTO_UPDATE) == "true" and is_true(conditions, READY)

"""Reconciling an InferenceService: observe, plan, apply, fold."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from isvc.api.annotations import DISABLE_AUTO_UPDATE, FINALIZER
from isvc.api.codec import DecodeError
from isvc.api.modes import DeploymentMode
from isvc.api.resources import INFERENCE_SERVICES, TRAINED_MODELS
from isvc.controllers.inferenceservice.mode import Rooms, rooms
from isvc.controllers.inferenceservice.observe import Observed, Observer
from isvc.controllers.inferenceservice.plan import plan, unplannable
from isvc.controllers.inferenceservice.planned import Planned
from isvc.controllers.inferenceservice.status.edit import READY
from isvc.controllers.inferenceservice.status.events import halt_events, virtual_host_events
from isvc.controllers.inferenceservice.status.fold import fold, halted, unplanned, unreadable
from isvc.controllers.inferenceservice.status.revisions import rolled_out
from isvc.engine.apply import Engine
from isvc.engine.commit import Commit
from isvc.kube.conditions import is_true
from isvc.kube.equality import equivalent
from isvc.kube.errors import NotFound
from isvc.kube.objects import Key, Object, dig, finalizers_of, is_being_deleted, labels_of, name_of
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.serving import knative
from isvc.serving.credentials import NotLookedUp
from isvc.serving.events import Event, failing, readiness_events
from isvc.serving.thirdparty import VIRTUAL_SERVICES
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, timestamp
from isvc.toolkit.controller import Result
from isvc.toolkit.remembered import Remembered

log = logging.getLogger(__name__)

LOOK_AGAIN: Final = 1.0  # after somebody's edit was undone: who edits one child often edits another, unseen
RECOVERY: Final = 0.5
REFUSED: Final = 30.0  # a namesake may go away, or a quota grow, without anyone telling
LOOK_FOR_KNATIVE: Final = 5.0
WAIT_FOR_MODEL_MESH: Final = 3.0


class Teller(Protocol):
    def event(self, obj: Object, type: str, reason: str, message: str) -> None: ...  # noqa: A002


class Told(NamedTuple):
    """What a reconcile has to say: the status, events, and when it wants to look again."""

    raw: Object
    status: Object
    events: tuple[Event, ...] = ()
    after: Result | None = None


class Reconciler:
    def __init__(self, client: Client, cache: Cache, recorder: Teller, clock: Clock, system_namespace: str) -> None:
        self._client = client
        self._cache = cache
        self._recorder = recorder
        self._clock = clock
        self._observer = Observer(cache, system_namespace)
        self._engine = Engine(client, cache)
        self._settings = Remembered(client, clock)
        self._commit = Commit(client, cache)
        self._recovering: dict[Key, float] = {}
        self._version: tuple[str, str] | None = None

    async def reconcile(self, key: Key) -> Result | None:
        answer = await self._see_to(key)
        if not isinstance(answer, Told):
            return answer
        await self._tell(answer)
        return answer.after

    async def _see_to(self, key: Key) -> Told | Result | None:
        """All but telling. What was observed and planned is let go here: a status may have to wait for its turn."""
        config = self._observer.configuration.in_force()
        if config is None:
            return self._observer.configuration.wait(key)
        try:
            observed = self._observer.observe(key, config, timestamp(self._clock.now()))
        except DecodeError as error:
            return self._unreadable(key, error)
        if observed is None:
            return None
        if observed.mode == DeploymentMode.MODEL_MESH and observed.service.spec.transformer is None:
            return Told(observed.raw, unplanned(observed))  # ModelMesh's own controller deploys it
        if is_being_deleted(observed.raw):
            return await self._delete(observed)
        observed = await self._with_finalizer(observed)
        if _is_pinned(observed):
            return None
        if observed.mode is DeploymentMode.MODEL_MESH and not observed.predictor_url:
            return Result(requeue_after=WAIT_FOR_MODEL_MESH)
        builders = rooms(observed)
        if builders is None:
            return _mode_rejected(observed)
        if observed.mode is not DeploymentMode.STANDARD:
            observed = await self._with_knative_settings(observed)
        return await self._deploy(await self._with_version(observed), builders)

    async def _deploy(self, observed: Observed, builders: Rooms) -> Told | Result:
        observed, planned = await self._plan(observed, builders)
        if pause := self._pause(observed, planned):
            return Result(requeue_after=pause)
        outcome = await self._engine.apply(observed.raw, planned.plan)
        status = fold(observed, planned, outcome, builders)
        before: Object = observed.raw.get("status") or {}
        missing = VIRTUAL_SERVICES not in observed.served and not observed.config.ingress.disable_istio_virtual_host
        events = (*halt_events(halted(planned, outcome)), *virtual_host_events(before, status, missing=missing))
        after = None
        if rolled_out(before) != rolled_out(status):
            after = Result(requeue_after=0)  # the traffic split is planned from the status just written
        elif outcome.refusal is not None:
            after = Result(requeue_after=REFUSED)
        elif outcome.repaired:
            after = Result(requeue_after=LOOK_AGAIN)
        return Told(observed.raw, status, events, after)

    async def _tell(self, told: Told) -> None:
        """Write the status if it is new, and tell what changed."""
        before: Object = told.raw.get("status") or {}
        await self._commit.status(INFERENCE_SERVICES, told.raw, told.status)
        because = failing(told.status)
        ready = readiness_events(INFERENCE_SERVICES.kind, name_of(told.raw), before, told.status, because=because)
        for event in (*told.events, *ready):
            self._recorder.event(told.raw, *event)

    # -- steps ------------------------------------------------------------------------------------------------------

    async def _plan(self, observed: Observed, builders: Rooms) -> tuple[Observed, Planned]:
        """Plan, reading service accounts and secrets as planning asks for them."""
        while True:
            try:
                return observed, plan(observed, builders)
            except NotLookedUp as missing:
                found = await self._read(missing.resource, missing.names, observed.namespace)
                observed = replace(observed, lookup=observed.lookup.knowing(missing.resource, found))
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                log.exception("%s/%s cannot be planned", observed.namespace, observed.name)
                return observed, unplannable(observed, error)

    async def _with_version(self, observed: Observed) -> Observed:
        """The version of Kubernetes, asked for once and only if models may come as image volumes."""
        if observed.config.storage_initializer.oci_mode != "native":
            return observed
        if self._version is None:
            told = await self._client.request("GET", "/version")
            self._version = (str(told.get("major", "")), str(told.get("minor", "")))
        return replace(observed, kubernetes=self._version)

    async def _with_knative_settings(self, observed: Observed) -> Observed:
        """What Knative's own configuration says about scaling from zero and about domains."""
        scaling = await self._settings.get(CONFIG_MAPS, knative.AUTOSCALER_CONFIG, knative.NAMESPACE)
        domains = await self._settings.get(CONFIG_MAPS, knative.DOMAIN_CONFIG, knative.NAMESPACE)
        return replace(
            observed,
            zero_initial_scale=knative.zero_initial_scale_allowed(scaling),
            knative_domains=tuple((domains or {}).get("data") or ()),
        )

    def _pause(self, observed: Observed, planned: Planned) -> float:
        """Seconds to wait before a service that could not be served is deployed after all.

        What was missing is often applied together with further edits; they are taken together.
        """
        key = Key.of(observed.raw)
        if planned.stop is not None or dig(observed.raw, "status", "modelStatus", "transitionStatus") != "InvalidSpec":
            self._recovering.pop(key, None)
            return 0.0
        now = self._clock.monotonic()
        return max(self._recovering.setdefault(key, now + RECOVERY) - now, 0.0)

    def _unreadable(self, key: Key, error: DecodeError) -> Told | None:
        """A service that is not of its type, which only a cluster without our webhooks and schema lets pass."""
        raw = self._cache.get(INFERENCE_SERVICES, key.name, key.namespace)
        if raw is None:
            return None
        status = unreadable(raw, timestamp(self._clock.now()), str(error))
        news = () if equivalent(raw.get("status") or {}, status) else (Event("Warning", "InvalidSpec", str(error)),)
        return Told(raw, status, news)

    async def _with_finalizer(self, observed: Observed) -> Observed:
        owner = await self._commit.add_finalizer(INFERENCE_SERVICES, observed.raw, FINALIZER)
        return observed if owner is observed.raw else replace(observed, raw=owner)

    async def _delete(self, observed: Observed) -> Result | None:
        """The models that name this service go with it; children are the garbage collector's."""
        if FINALIZER not in finalizers_of(observed.raw):
            return None
        models = self._cache.list(TRAINED_MODELS, observed.namespace) if self._cache.serves(TRAINED_MODELS) else []
        for model in models:
            if labels_of(model).get("inferenceservice") == observed.name:
                await self._commit.deletion(TRAINED_MODELS, model)
        await self._commit.remove_finalizer(INFERENCE_SERVICES, observed.raw, FINALIZER)
        return None

    async def _read(self, resource: Resource, names: tuple[str, ...], namespace: str) -> dict[str, Object | None]:
        async def one(name: str) -> Object | None:
            try:
                return await self._client.get(resource, name, namespace)
            except NotFound:
                return None

        return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))


def _is_pinned(observed: Observed) -> bool:
    """A ready service whose owner asked for no automatic updates."""
    conditions = (observed.raw.get("status") or {}).get("conditions") or ()
    return observed.annotations.get(DISABLE_AUTO_UPDATE) == "true" and is_true(conditions, READY)


def _mode_rejected(observed: Observed) -> Told:
    """Told once; looked at again, in case Knative is installed later."""
    status = unplanned(observed)
    message = f"It is not possible to use {observed.mode} deployment mode when Knative Services are not available"
    news = () if status == observed.raw.get("status") else (Event("Warning", "ServerlessModeRejected", message),)
    return Told(observed.raw, status, news, Result(requeue_after=LOOK_FOR_KNATIVE))

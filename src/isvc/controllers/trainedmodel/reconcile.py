"""Reconciling a TrainedModel: observe, plan, apply.

A model has no children. It writes to itself, and to a list that it shares with the other models of its service: that
write has to meet the version that was read, so that no model drops another from the list.
"""

from __future__ import annotations

import logging

from isvc.api.codec import DecodeError
from isvc.api.resources import TRAINED_MODELS
from isvc.controllers.trainedmodel.model_list import FILE
from isvc.controllers.trainedmodel.observe import observe
from isvc.controllers.trainedmodel.plan import FINALIZER, Observed, Plan, plan
from isvc.controllers.trainedmodel.status import unreadable
from isvc.engine.commit import Commit
from isvc.kube.objects import Key, finalizers_of
from isvc.kube.resource import CONFIG_MAPS
from isvc.toolkit.cache import Memory
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, timestamp
from isvc.toolkit.controller import Result

log = logging.getLogger(__name__)

LOOK_AGAIN = 2.0  # for the list of models, which is not watched


class Reconciler:
    def __init__(self, client: Client, cache: Memory, clock: Clock) -> None:
        self._client = client
        self._cache = cache
        self._clock = clock
        self._commit = Commit(client, cache)

    async def reconcile(self, key: Key) -> Result | None:
        model = self._cache.get(TRAINED_MODELS, key.name, key.namespace)
        if model is None:
            return None
        try:
            observed = await observe(self._cache, self._client, model, timestamp(self._clock.now()))
        except DecodeError as error:
            unread = unreadable(model.get("status") or {}, str(error), timestamp(self._clock.now()))
            await self._commit.status(TRAINED_MODELS, model, unread)
            return None
        wanted = plan(observed)
        if wanted.delete:
            await self._commit.deletion(TRAINED_MODELS, model)
            return None
        await self._apply(observed, wanted)
        if wanted.waits_for:
            log.info("%s waits: %s", key, wanted.waits_for)
            return Result(requeue_after=LOOK_AGAIN)
        return None

    async def _apply(self, observed: Observed, wanted: Plan) -> None:
        """The finalizer comes before the list is touched and goes after: a listed model is never forgotten."""
        model = observed.raw
        finalizers = finalizers_of(model)
        if wanted.finalizer:
            wanted_finalizers = finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]
            written = await self._commit.metadata(
                TRAINED_MODELS, model, labels=wanted.labels, finalizers=wanted_finalizers, spec=wanted.spec
            )
            model = written or model
        if wanted.status is not None:
            await self._commit.status(TRAINED_MODELS, model, wanted.status)
        if wanted.models is not None and observed.config_map is not None:
            await self._commit.data(CONFIG_MAPS, observed.config_map, {FILE: wanted.models})
        if not wanted.finalizer and FINALIZER in finalizers:
            await self._commit.remove_finalizer(TRAINED_MODELS, model, FINALIZER)

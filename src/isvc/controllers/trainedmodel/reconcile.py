"""Reconciling a TrainedModel: observe, plan, apply.

A model has no children. It writes to itself, and to a list that it shares with the other models of its service: that
write has to meet the version that was read, so that no model drops another from the list.
"""

from __future__ import annotations

import logging

from isvc.api import InferenceService
from isvc.api.codec import DecodeError
from isvc.api.completion import read, read_other
from isvc.api.frameworks import with_model
from isvc.api.resources import INFERENCE_SERVICES, TRAINED_MODELS
from isvc.api.trainedmodel import TrainedModel
from isvc.controllers.trainedmodel.model_list import FILE
from isvc.controllers.trainedmodel.plan import FINALIZER, SHARD, Observed, Plan, plan
from isvc.controllers.trainedmodel.status import unreadable
from isvc.engine.commit import Commit
from isvc.kube.errors import NotFound
from isvc.kube.objects import Key, Object, finalizers_of, is_being_deleted
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving import names
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
            observed = await self._observe(model)
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

    async def _observe(self, model: Object) -> Observed:
        model, typed = read(TrainedModel, model)
        namespace, parent = typed.metadata.namespace, typed.spec.inference_service
        going = is_being_deleted(model)  # which nothing but the list of models is needed for
        service = None if going else self._cache.get(INFERENCE_SERVICES, parent, namespace)
        siblings = () if going else self._cache.list(TRAINED_MODELS, namespace)
        return Observed(
            raw=model,
            model=typed,
            service=None if service is None else read_other(InferenceService, with_model(service)),
            siblings=tuple(map(TrainedModel.decode, siblings)),
            config_map=await self._model_list(parent, namespace),
            now=timestamp(self._clock.now()),
        )

    async def _model_list(self, parent: str, namespace: str) -> Object | None:
        try:
            return await self._client.get(CONFIG_MAPS, names.model_config(parent, SHARD), namespace)
        except NotFound:
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

"""Reads what a TrainedModel is planned from: the cache, and the list of models, which is not in it."""

from __future__ import annotations

from isvc.api import InferenceService
from isvc.api.completion import read, read_other
from isvc.api.frameworks import with_model
from isvc.api.resources import INFERENCE_SERVICES, TRAINED_MODELS
from isvc.api.trainedmodel import TrainedModel
from isvc.controllers.trainedmodel.plan import SHARD, Observed
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object, is_being_deleted
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving import names
from isvc.toolkit.cache import Reader
from isvc.toolkit.client import Client


async def observe(reader: Reader, client: Client, model: Object, now: str) -> Observed:
    model, typed = read(TrainedModel, model)
    namespace, parent = typed.metadata.namespace, typed.spec.inference_service
    going = is_being_deleted(model)  # which nothing but the list of models is needed for
    service = None if going else reader.get(INFERENCE_SERVICES, parent, namespace)
    siblings = () if going else reader.list(TRAINED_MODELS, namespace)
    return Observed(
        raw=model,
        model=typed,
        service=None if service is None else read_other(InferenceService, with_model(service)),
        siblings=tuple(map(TrainedModel.decode, siblings)),
        config_map=await _model_list(client, parent, namespace),
        now=now,
    )


async def _model_list(client: Client, parent: str, namespace: str) -> Object | None:
    try:
        return await client.get(CONFIG_MAPS, names.model_config(parent, SHARD), namespace)
    except NotFound:
        return None

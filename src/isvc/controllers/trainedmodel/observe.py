"""Reads what a TrainedModel is planned from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from isvc.api import InferenceService
from isvc.api.codec import DecodeError
from isvc.api.completion import read, read_other
from isvc.api.defaults.inferenceservice import default_stored
from isvc.api.resources import INFERENCE_SERVICES, TRAINED_MODELS
from isvc.api.trainedmodel import TrainedModel
from isvc.engine import kind as engine
from isvc.engine.needs import Answers, Stored
from isvc.kube.objects import Object
from isvc.kube.readiness import is_ready
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving import names
from isvc.toolkit.cache import Reader

SHARD = 0  # every service has one list so far


@dataclass(frozen=True)
class Observed(engine.Observed):
    """A model (as stored, and typed), the service it belongs to, and the models beside it."""

    model: TrainedModel
    service: InferenceService | None
    is_service_ready: bool
    siblings: tuple[TrainedModel, ...]

    @property
    def config_map(self) -> Object | None:
        """The list of models of the service."""
        return self.answers[model_config(self.model.spec.inference_service, self.namespace)]


def observe(reader: Reader, raw: Object, answers: Answers, now: str) -> Observed:
    raw, model = read(TrainedModel, raw)
    namespace = model.metadata.namespace
    service = reader.get(INFERENCE_SERVICES, model.spec.inference_service, namespace)
    if service is None:  # a model without one is deleted: it may have been heard of before its service
        service = answers[Stored(INFERENCE_SERVICES, model.spec.inference_service, namespace)]
    return Observed(
        raw=raw,
        model=model,
        service=None if service is None else read_other(InferenceService, default_stored(service)),
        is_service_ready=service is not None and is_ready(service),
        siblings=tuple(_readable(reader.list(TRAINED_MODELS, namespace))),
        answers=answers,
        now=now,
    )


def _readable(models: Iterable[Object]) -> Iterator[TrainedModel]:
    """Yields the models that can be read: a malformed one says so in its own status, and holds up no other."""
    for raw in models:
        try:
            yield read(TrainedModel, raw)[1]
        except DecodeError:
            continue


def model_config(service: str, namespace: str) -> Stored:
    """Returns the ConfigMap with a service's list of models, read afresh: many write to it, and it is not watched."""
    return Stored(CONFIG_MAPS, names.model_config(service, SHARD), namespace)

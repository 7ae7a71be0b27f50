"""What has to happen to a TrainedModel, decided from what was observed and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from isvc.api.inferenceservice import InferenceService, PredictorSpec
from isvc.api.trainedmodel import TrainedModel
from isvc.controllers.trainedmodel import model_list
from isvc.controllers.trainedmodel.status import CONDITIONS, fold_status
from isvc.kube import conditions
from isvc.kube.objects import Object, dig, is_being_deleted
from isvc.kube.quantity import Quantity
from isvc.serving import names

FINALIZER = "trainedmodel.finalizer"
PARENT_LABEL = "inferenceservice"
ALLOCATED_LABEL = "serving.kserve.io/trainedmodel-allocated"
SHARD = 0  # every service has one list so far


@dataclass(frozen=True, slots=True)
class Observed:
    """A model (as stored, and typed), the service it belongs to, the models beside it, and the list of models."""

    raw: Object
    model: TrainedModel
    service: InferenceService | None
    siblings: tuple[TrainedModel, ...]
    config_map: Object | None
    now: str


@dataclass(frozen=True, slots=True)
class Plan:
    """`None` means: leave it as it is. `delete` asks for the model itself to be deleted, `spec` is a patch."""

    delete: bool = False
    labels: dict[str, str] | None = None
    spec: Object | None = None
    finalizer: bool = True
    status: Object | None = None
    models: str | None = None
    waits_for: str = ""


def plan(observed: Observed) -> Plan:
    model, service = observed.model, observed.service
    if is_being_deleted(observed.raw):
        return Plan(finalizer=False, models=_list_without(observed))
    if service is None:
        return Plan(delete=True)
    name = service.metadata.name
    labels = {**model.metadata.labels, PARENT_LABEL: name}
    fits = _fits(observed)
    if fits:
        labels.setdefault(ALLOCATED_LABEL, name)
    status = fold_status(observed.raw, service, fits=fits, now=observed.now)
    spec = _spelled(model)
    if not conditions.is_true(status["conditions"], CONDITIONS.happy):
        return Plan(labels=labels, spec=spec, status=status)
    if observed.config_map is None:
        missing = names.model_config(name, SHARD)
        waits_for = f"ConfigMap {missing} does not exist yet"
        return Plan(labels=labels, spec=spec, status=status, waits_for=waits_for)
    text = model_list.with_model(observed.config_map, model.metadata.name, model.spec.model)
    changed = not model_list.says_the_same(observed.config_map, text)
    return Plan(labels=labels, spec=spec, status=status, models=text if changed else None)


def _list_without(observed: Observed) -> str | None:
    if observed.config_map is None:
        return None
    text = model_list.without_model(observed.config_map, observed.model.metadata.name)
    return None if model_list.says_the_same(observed.config_map, text) else text


def _fits(observed: Observed) -> bool:
    """Whether the service's memory limit holds the models admitted so far and this one.

    Only a limit that stands in the InferenceService counts: what a runtime would add is not known here.
    """
    assert observed.service is not None
    own, service = observed.model.metadata.name, observed.service
    admitted = [m for m in observed.siblings if m.metadata.name != own and _is_admitted(m, service)]
    needed = sum((_memory(m) for m in (*admitted, observed.model)), Quantity.parse("0"))
    return needed <= _limit(service.spec.predictor)


def _is_admitted(model: TrainedModel, service: InferenceService) -> bool:
    labels = model.metadata.labels
    return labels.get(PARENT_LABEL) == labels.get(ALLOCATED_LABEL) == service.metadata.name


def _memory(model: TrainedModel) -> Quantity:
    return Quantity.parse(model.spec.model.memory or "0")


def _spelled(model: TrainedModel) -> Object | None:
    """The memory in the one spelling that the list of models has, too: 1Gi where somebody wrote 1024Mi."""
    memory = str(_memory(model))
    return None if memory == model.spec.model.memory else {"model": {"memory": memory}}


def _limit(predictor: PredictorSpec) -> Quantity:
    server = predictor.model.container if predictor.model else dig(predictor.pod, "containers", 0)
    return Quantity.parse(dig(server, "resources", "limits", "memory") or "0")

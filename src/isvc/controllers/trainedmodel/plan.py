"""What has to happen to a TrainedModel, decided from what was observed and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from isvc.controllers.trainedmodel import model_list
from isvc.controllers.trainedmodel.status import CONDITIONS, fold_status
from isvc.kube import conditions
from isvc.kube.objects import Object, dig, is_being_deleted, labels_of, name_of
from isvc.kube.quantity import Quantity
from isvc.serving import names

FINALIZER = "trainedmodel.finalizer"
PARENT_LABEL = "inferenceservice"
ALLOCATED_LABEL = "serving.kserve.io/trainedmodel-allocated"
SHARD = 0  # every service has one list so far


@dataclass(frozen=True, slots=True)
class Observed:
    """A model, the service it belongs to, the models beside it, and the service's list of models."""

    model: Object
    service: Object | None
    siblings: tuple[Object, ...]
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
    if is_being_deleted(model):
        return Plan(finalizer=False, models=_list_without(observed))
    if service is None:
        return Plan(delete=True)
    labels = {**labels_of(model), PARENT_LABEL: name_of(service)}
    fits = _fits(observed)
    if fits:
        labels.setdefault(ALLOCATED_LABEL, name_of(service))
    status = fold_status(model, service, fits=fits, now=observed.now)
    spec = _spelled(model)
    if not conditions.is_true(status["conditions"], CONDITIONS.happy):
        return Plan(labels=labels, spec=spec, status=status)
    if observed.config_map is None:
        missing = names.model_config(name_of(service), SHARD)
        waits_for = f"ConfigMap {missing} does not exist yet"
        return Plan(labels=labels, spec=spec, status=status, waits_for=waits_for)
    text = model_list.with_model(observed.config_map, name_of(model), model["spec"]["model"])
    changed = not model_list.says_the_same(observed.config_map, text)
    return Plan(labels=labels, spec=spec, status=status, models=text if changed else None)


def _list_without(observed: Observed) -> str | None:
    if observed.config_map is None:
        return None
    text = model_list.without_model(observed.config_map, name_of(observed.model))
    return None if model_list.says_the_same(observed.config_map, text) else text


def _fits(observed: Observed) -> bool:
    """Whether the service's memory limit holds the models admitted so far and this one.

    Only a limit that stands in the InferenceService counts: what a runtime would add is not known here.
    """
    assert observed.service is not None
    own = name_of(observed.model)
    admitted = [m for m in observed.siblings if name_of(m) != own and _is_admitted(m, observed.service)]
    needed = sum((_memory(m) for m in (*admitted, observed.model)), Quantity.parse("0"))
    return needed <= _limit(observed.service)


def _is_admitted(model: Object, service: Object) -> bool:
    labels = labels_of(model)
    return labels.get(PARENT_LABEL) == labels.get(ALLOCATED_LABEL) == name_of(service)


def _memory(model: Object) -> Quantity:
    return Quantity.parse(dig(model, "spec", "model", "memory") or "0")


def _spelled(model: Object) -> Object | None:
    """The memory in the one spelling that the list of models has, too: 1Gi where somebody wrote 1024Mi."""
    memory = str(_memory(model))
    return None if memory == model["spec"]["model"].get("memory") else {"model": {"memory": memory}}


def _limit(service: Object) -> Quantity:
    predictor = dig(service, "spec", "predictor") or {}
    server = predictor.get("model") or dig(predictor, "containers", 0) or {}
    return Quantity.parse(dig(server, "resources", "limits", "memory") or "0")

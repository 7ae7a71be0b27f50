"""What has to happen to a TrainedModel, decided from what was observed and nothing else.

A model has no children. It has an entry in a list that it shares with the other models of its service.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from isvc.api.inferenceservice import InferenceService, PredictorSpec
from isvc.api.resources import TRAINED_MODELS
from isvc.api.trainedmodel import TrainedModel
from isvc.controllers.trainedmodel import model_list
from isvc.controllers.trainedmodel.model_list import UnreadableList
from isvc.controllers.trainedmodel.observe import SHARD, Observed, model_config
from isvc.engine.kind import Claim
from isvc.engine.needs import Answers
from isvc.engine.plan import ChildKey, Edit, Part, Plan, Retire, Stop, Want
from isvc.kube.conditions import ConditionSet
from isvc.kube.objects import Object, dig, name_of, namespace_of
from isvc.kube.quantity import Quantity
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving import endpoints, names

PARENT_LABEL: Final = "inferenceservice"
ALLOCATED_LABEL: Final = "serving.kserve.io/trainedmodel-allocated"
SERVICE_READY: Final = "InferenceServiceReady"
MEMORY_AVAILABLE: Final = "MemoryResourceAvailable"
MULTI_MODEL: Final = "IsMMSPredictor"
CONDITIONS: Final = ConditionSet((SERVICE_READY, MEMORY_AVAILABLE, MULTI_MODEL))
_LIST: Final = "list of models"


def claim(observed: Observed) -> Claim | None:
    """Returns the labels by which a model that fits keeps its place; None without a service to have one in."""
    if observed.service is None:
        return None
    name = observed.service.metadata.name
    labels = {**observed.model.metadata.labels, PARENT_LABEL: name}
    if fits(observed, observed.service):
        labels.setdefault(ALLOCATED_LABEL, name)
    return Claim(labels, _respell_memory(observed.model))


def plan(observed: Observed) -> Plan:
    service, model = observed.service, observed.model
    if service is None:
        part = Part("the model", Retire("its service does not exist"), found=((TRAINED_MODELS, observed.raw),))
        return Plan((part,), _missing_service(model))
    stop = next(problems(observed, service), None)
    if stop is None and observed.config_map is None:
        message = f"ConfigMap {names.model_config(service.metadata.name, SHARD)} does not exist yet"
        remedy = "wait until the service's controller makes it"
        stop = Stop(_LIST, SERVICE_READY, "NoModelList", message, remedy, waits=True)
    if stop is not None:
        return Plan((Part(stop.part, stop.hold),), stop)
    try:
        return Plan((_list_part(observed.config_map, partial(model_list.add, model.metadata.name, model.spec.model)),))
    except UnreadableList as error:
        stop = Stop(_LIST, SERVICE_READY, "InvalidModelList", str(error), "mend it, or delete it to have it made anew")
        return Plan((Part(_LIST, stop.hold),), stop)


def finalize(raw: Object, answers: Answers, now: str) -> Plan:
    """The model leaves the list; one that nobody can read holds nothing up."""
    parent = dig(raw, "spec", "inferenceService")
    config_map = answers[model_config(str(parent), namespace_of(raw))] if parent else None
    try:
        return Plan((_list_part(config_map, partial(model_list.remove, name_of(raw))),))
    except UnreadableList:
        return Plan()


def problems(observed: Observed, service: InferenceService) -> Iterator[Stop]:
    """Yields what keeps the model from being served, for each condition that does not hold."""
    stop = partial(Stop, "service", subject=f"InferenceService {service.metadata.name}")
    if not endpoints.is_multi_model(service.spec.predictor):
        message = "Inference Service predictor is not configured for multi-model serving"
        remedy = "give its predictor a runtime with multiModel: true, and no storageUri of its own"
        yield stop(MULTI_MODEL, "IsNotMMSPredictor", message, remedy)
    if not fits(observed, service):
        message = "Inference Service does not have enough memory resources for Trained Model"
        remedy = "raise resources.limits.memory of its predictor, or lower spec.model.memory of its models"
        yield stop(MEMORY_AVAILABLE, "MemoryResourceNotAvailable", message, remedy)
    if not observed.is_service_ready:
        message = "Inference Service needs to be ready before Trained Model can be ready"
        remedy = "isvc explain says why that service is not ready"
        yield stop(SERVICE_READY, "InferenceServiceNotReady", message, remedy)


def _missing_service(model: TrainedModel) -> Stop:
    name, parent = model.metadata.name, model.spec.inference_service
    message = f"InferenceService {parent}, which TrainedModel {name} belongs to, does not exist"
    remedy = "create it; its controller deletes models that belong to no service"
    return Stop("the model", SERVICE_READY, "ServiceMissing", message, remedy)


def _list_part(config_map: Object | None, change: Callable[[Object | None], Object | None]) -> Part:
    """Returns the part that changes the list, if it exists. Raises `UnreadableList`."""
    if config_map is None or change(config_map) is None:
        return Part(_LIST, Want(()))
    key = ChildKey(CONFIG_MAPS, name_of(config_map), namespace_of(config_map))
    return Part(_LIST, Want((), (Edit(key, change, config_map),)))


def fits(observed: Observed, service: InferenceService) -> bool:
    """Returns whether the service's memory limit holds the models admitted so far and this one.

    Only a limit that stands in the InferenceService counts: what a runtime would add is not known here.
    """
    own = observed.model.metadata.name
    admitted = [m for m in observed.siblings if m.metadata.name != own and _is_admitted(m, service)]
    needed = sum((_memory(m) for m in (*admitted, observed.model)), Quantity.parse("0"))
    return needed <= _limit(service.spec.predictor)


def _is_admitted(model: TrainedModel, service: InferenceService) -> bool:
    labels = model.metadata.labels
    return labels.get(PARENT_LABEL) == labels.get(ALLOCATED_LABEL) == service.metadata.name


def _memory(model: TrainedModel) -> Quantity:
    return Quantity.parse(model.spec.model.memory or "0")


def _respell_memory(model: TrainedModel) -> Object | None:
    """Returns the memory in the one spelling that the list of models has, too: 1Gi where somebody wrote 1024Mi."""
    memory = str(_memory(model))
    return None if memory == model.spec.model.memory else {"model": {"memory": memory}}


def _limit(predictor: PredictorSpec) -> Quantity:
    server = predictor.model.container if predictor.model else dig(predictor.pod, "containers", 0)
    return Quantity.parse(dig(server, "resources", "limits", "memory") or "0")

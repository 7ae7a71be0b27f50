"""The list of models that a multi-model server has to serve, as JSON in a ConfigMap of the InferenceService."""

from __future__ import annotations

import json
from typing import Any

from isvc.api.trainedmodel import TrainedModelModel
from isvc.kube import gojson
from isvc.kube.objects import Object, dig
from isvc.kube.quantity import Quantity

FILE = "models.json"


class UnreadableList(ValueError):
    """The ConfigMap was edited into something that is no list of models."""


def add(name: str, model: TrainedModelModel, config_map: Object | None) -> Object | None:
    """Returns the patch that puts this model on the list, in place if it is there already; None if it says the same."""
    if config_map is None:
        return None
    memory = str(Quantity.parse(model.memory or 0))
    spec = {"storageUri": model.storage_uri, "framework": model.framework, "memory": memory}
    entry = {"modelName": name, "modelSpec": spec}
    models = _models(config_map)
    names = [listed.get("modelName") for listed in models]
    if name in names:
        models[names.index(name)] = entry
    else:
        models.append(entry)
    return _patch(config_map, models)


def remove(name: str, config_map: Object | None) -> Object | None:
    """Returns the patch that takes this model off the list; None if it is not there."""
    if config_map is None:
        return None
    return _patch(config_map, [model for model in _models(config_map) if model.get("modelName") != name])


def _patch(config_map: Object, models: list[Object]) -> Object | None:
    """However the list is spaced, the same models are the same list."""
    return None if _models(config_map) == models else {"data": {FILE: gojson.dumps(models)}}


def _models(config_map: Object) -> list[Object]:
    text = dig(config_map, "data", FILE) or "[]"
    try:
        models: Any = json.loads(text)
    except ValueError as error:
        raise UnreadableList(f"{FILE} of ConfigMap {dig(config_map, 'metadata', 'name')}: {error}") from None
    if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
        raise UnreadableList(f"{FILE} of ConfigMap {dig(config_map, 'metadata', 'name')} is not a list of models")
    return models

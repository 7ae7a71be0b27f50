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


def with_model(config_map: Object, name: str, model: TrainedModelModel) -> str:
    """The list with this model, in place if it is there already."""
    memory = str(Quantity.parse(model.memory or 0))
    spec = {"storageUri": model.storage_uri, "framework": model.framework, "memory": memory}
    entry = {"modelName": name, "modelSpec": spec}
    models = _models(config_map)
    names = [listed.get("modelName") for listed in models]
    if name in names:
        models[names.index(name)] = entry
    else:
        models.append(entry)
    return gojson.dumps(models)


def without_model(config_map: Object, name: str) -> str:
    return gojson.dumps([model for model in _models(config_map) if model.get("modelName") != name])


def says_the_same(config_map: Object, text: str) -> bool:
    """Whether the ConfigMap holds this list already, however it is spaced."""
    same: bool = _models(config_map) == json.loads(text)
    return same


def _models(config_map: Object) -> list[Object]:
    text = dig(config_map, "data", FILE) or "[]"
    try:
        models: Any = json.loads(text)
    except ValueError as error:
        raise UnreadableList(f"{FILE} of ConfigMap {dig(config_map, 'metadata', 'name')}: {error}") from None
    if not isinstance(models, list) or not all(isinstance(model, dict) for model in models):
        raise UnreadableList(f"{FILE} of ConfigMap {dig(config_map, 'metadata', 'name')} is not a list of models")
    return models

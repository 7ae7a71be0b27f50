"""TrainedModel: one of the models that a multi-model InferenceService holds."""

from __future__ import annotations

from isvc.api.fields import Quantity, Required, Spec, zero
from isvc.api.meta import Addressable, Kind, Status


class TrainedModelModel(Spec):
    """The model: where it is, what it is, how much memory it takes."""

    storage_uri: Required[str] = zero(str)
    """Where the model is stored."""
    framework: Required[str] = zero(str)
    """What kind of model it is, for example sklearn."""
    memory: Required[Quantity] = zero(str)
    """Memory that the model takes."""


class TrainedModelSpec(Spec):
    """What is wanted."""

    inference_service: Required[str] = zero(str)
    """The InferenceService that is to hold the model."""
    model: Required[TrainedModelModel] = zero(TrainedModelModel)
    """The model."""


class TrainedModelStatus(Status):
    """What is there."""

    url: str | None = None
    """Where the model answers."""
    address: Addressable | None = None
    """Where the model answers inside the cluster."""


class TrainedModel(Kind):
    """One of the models that a multi-model InferenceService holds."""

    spec: TrainedModelSpec = TrainedModelSpec()
    """What is wanted."""
    status: TrainedModelStatus = TrainedModelStatus()
    """What is there."""

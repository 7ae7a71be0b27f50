"""Validates TrainedModels and their updates."""

from __future__ import annotations

import re
from collections.abc import Iterator

from isvc.api.completion import complete
from isvc.api.trainedmodel import TrainedModel
from isvc.api.validation import GOOD, Problem, Verdict, is_exempt
from isvc.kube.objects import Object
from isvc.kube.quantity import Quantity, QuantityError

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
SCHEMES = ("s3://", "gs://", "https://", "http://")
"""What the agent that pulls models into a running server can download."""


def validate_trained_model(new: Object, old: Object | None = None) -> Verdict:
    new = complete(new, TrainedModel)
    model = TrainedModel.decode(new)
    if is_exempt(old, new):
        return GOOD
    return Verdict.of(_problems(model, TrainedModel.decode(old) if old is not None else None))


def _problems(model: TrainedModel, old: TrainedModel | None) -> Iterator[Problem]:
    if not _NAME.fullmatch(model.metadata.name):
        yield Problem(
            "metadata.name",
            f"must consist of alphanumeric characters, '_', or '-', such as my-model; got {model.metadata.name!r}",
        )
    uri = model.spec.model.storage_uri
    if not uri.startswith(SCHEMES):
        yield Problem(
            "spec.model.storageUri", f"must start with one of the prefixes: {', '.join(SCHEMES)}; got {uri!r}"
        )
    if old is not None and _bytes(old.spec.model.memory) != _bytes(model.spec.model.memory):
        yield Problem(
            "spec.model.memory",
            f"field is immutable: it was {old.spec.model.memory}, got {model.spec.model.memory};"
            " delete the model and create it anew",
        )


def _bytes(memory: int | float | str) -> Quantity | str:
    try:
        return Quantity.parse(memory)
    except QuantityError:
        return str(memory)

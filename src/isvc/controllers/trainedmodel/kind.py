"""What a TrainedModel is to the reconciler."""

from __future__ import annotations

from functools import partial

from isvc.api.resources import TRAINED_MODELS
from isvc.api.trainedmodel import TrainedModel
from isvc.controllers.trainedmodel.observe import Observed, observe
from isvc.controllers.trainedmodel.plan import CONDITIONS, claim, finalize, plan
from isvc.controllers.trainedmodel.status import fold
from isvc.engine.kind import Kind
from isvc.engine.plan import Plan
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Reader


def make_kind(reader: Reader, environment: Environment) -> Kind[Observed, Plan]:
    return Kind(
        resource=TRAINED_MODELS,
        api_type=TrainedModel,
        conditions=CONDITIONS,
        finalizer="trainedmodel.finalizer",
        observe=partial(observe, reader),
        claim=claim,
        plan=plan,
        fold=fold,
        finalize=finalize,
    )

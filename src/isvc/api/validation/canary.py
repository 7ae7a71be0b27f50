"""Validates the canaries of an InferenceService."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from isvc.api.implementations import implementations
from isvc.api.inferenceservice import CanarySpec, InferenceServiceSpec, PredictorSpec
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode
from isvc.api.validation import Problem
from isvc.api.validation.components import component_problems

_SCALING = ("scaleTarget", "scaleMetric", "autoScaling")


def canaries(spec: InferenceServiceSpec, annotations: Mapping[str, str]) -> Iterator[Problem]:
    if not spec.canary:
        return
    if annotations.get(DEPLOYMENT_MODE) != DeploymentMode.STANDARD:
        yield Problem("spec.canary", f"is for Standard mode only; set the annotation {DEPLOYMENT_MODE}: Standard")
    chosen = implementations(spec.predictor)
    if spec.predictor.model is None and not (chosen and chosen[0].storage_uri is not None):
        yield Problem("spec.canary", "needs a predictor with a model: multi-model servers have no canaries")
    names = [canary.predictor.name for canary in spec.canary]
    for index, canary in enumerate(spec.canary):
        path = f"spec.canary[{index}]"
        yield from _name(names, index, spec.predictor, path)
        yield from _one(canary, spec.predictor, path)
    total = sum(canary.traffic_percent for canary in spec.canary)
    if total > 100:
        yield Problem("spec.canary", f"the trafficPercent of all canaries must not exceed 100 together, got {total}")


def _name(names: list[str], index: int, stable: PredictorSpec, path: str) -> Iterator[Problem]:
    name = names[index]
    if not name:
        yield Problem(f"{path}.predictor.name", "is required")
    elif name in names[:index]:
        yield Problem(f"{path}.predictor.name", f"{name!r} is already the name of another canary")
    elif name == stable.name:
        yield Problem(f"{path}.predictor.name", f"{name!r} is already the name of the predictor")


def _one(canary: CanarySpec, stable: PredictorSpec, path: str) -> Iterator[Problem]:
    predictor = canary.predictor
    if not 0 <= canary.traffic_percent <= 100:
        yield Problem(f"{path}.trafficPercent", f"must be from 0 to 100, got {canary.traffic_percent}")
    path = f"{path}.predictor"
    yield from component_problems(predictor, path)
    if predictor.worker_spec is not None:
        yield Problem(f"{path}.workerSpec", "is not for canaries: they run on one node")
    if predictor.max_replicas > 0:
        yield Problem(f"{path}.maxReplicas", "is not for canaries: they have a fixed number of replicas (minReplicas)")
    for field, value in zip(
        _SCALING, (predictor.scale_target, predictor.scale_metric, predictor.auto_scaling), strict=True
    ):
        if value is not None:
            yield Problem(f"{path}.{field}", "is not for canaries: they have a fixed number of replicas (minReplicas)")
    most = 1 if stable.min_replicas is None else stable.min_replicas
    if predictor.min_replicas is not None and predictor.min_replicas > most:
        yield Problem(
            f"{path}.minReplicas",
            f"must not exceed the predictor's minReplicas ({most}), got {predictor.min_replicas}",
        )

"""Validates InferenceServices and their updates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from isvc.api.annotations import AUTOSCALER_CLASS, AutoscalerClass
from isvc.api.completion import complete
from isvc.api.inferenceservice import CanarySpec, InferenceService, InferenceServiceSpec, PredictorSpec
from isvc.api.inferenceservice.implementations import (
    STORAGE_URI_ENV,
    TRANSFORMER_CONTAINER,
    Component,
    containers_of,
    env_value,
    implementations,
    named_models,
)
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode, current_name
from isvc.api.validation import GOOD, Problem, Verdict, is_exempt
from isvc.api.validation.components import blocked_variables, component_problems
from isvc.api.validation.containers import KNOWN_GPUS, parallel_env, parallel_sizes, unknown_gpus
from isvc.api.validation.scaling import autoscaler_class, scaling
from isvc.api.validation.storage import confidential, confidential_warnings, storage_uris
from isvc.kube.names import DNS_1035_LABEL
from isvc.kube.objects import Object

_SCALING = ("scaleTarget", "scaleMetric", "autoScaling")


def validate_service(new: Object, old: Object | None = None, gpus: Iterable[str] = KNOWN_GPUS) -> Verdict:
    """Judges whether a service may be stored. Raises `DecodeError` where it is not even of its types."""
    new = complete(new, InferenceService)
    service = InferenceService.decode(new)
    if is_exempt(old, new):
        return GOOD
    problems = list(_changes(service, InferenceService.decode(old))) if old is not None else []
    problems += _problems(service, tuple(gpus))
    chosen = implementations(service.spec.predictor)
    spec = chosen[0].confidential if chosen else None
    warnings = confidential_warnings(spec is not None and spec.enabled, chosen[0].storage_uri if chosen else None)
    return Verdict.of(problems, warnings)


def _components(service: InferenceService) -> Iterator[tuple[str, Component]]:
    spec = service.spec
    for name, component in (
        ("predictor", spec.predictor),
        ("transformer", spec.transformer),
        ("explainer", spec.explainer),
    ):
        if component is not None:
            yield f"spec.{name}", component


def _problems(service: InferenceService, gpus: tuple[str, ...]) -> Iterator[Problem]:
    annotations = service.metadata.annotations
    predictor = service.spec.predictor
    if not DNS_1035_LABEL.fullmatch(service.metadata.name):
        yield Problem(
            "metadata.name",
            "must consist of lower case alphanumeric characters or '-', and must start with alphabetical character,"
            f" such as my-model; got {service.metadata.name!r}",
        )
    yield from autoscaler_class(annotations)
    for path, component in _components(service):
        yield from blocked_variables(component, path)
    yield from _multi_node(service, gpus)
    yield from _beside_the_model(predictor)
    for path, component in _components(service):
        yield from storage_uris(component, implementations(component), path)
        yield from component_problems(component, path)
        yield from scaling(component, annotations, path)
    yield from confidential(implementations(predictor), "spec.predictor")
    yield from canaries(service.spec, annotations)


def _beside_the_model(predictor: PredictorSpec) -> Iterator[Problem]:
    for name, spec in named_models(predictor):
        if spec.container.get("name"):
            yield Problem(
                f"spec.predictor.{name}.name",
                "is a field that is not allowed in standard predictor: the container has a fixed name",
            )
    for index, container in enumerate(containers_of(predictor.pod)):
        if container.get("name") == TRANSFORMER_CONTAINER and env_value(container, STORAGE_URI_ENV) is not None:
            yield Problem(
                f"spec.predictor.containers[{index}].env",
                f"storage uri should not be specified in transformer container; remove {STORAGE_URI_ENV}",
            )


def _multi_node(service: InferenceService, gpus: tuple[str, ...]) -> Iterator[Problem]:
    predictor, annotations = service.spec.predictor, service.metadata.annotations
    worker = predictor.worker_spec
    if worker is None:
        return
    path = "spec.predictor.workerSpec"
    containers = containers_of(worker.pod)
    if len(containers) > 1:
        yield Problem(
            f"{path}.containers", f"setting multiple containers in workerSpec is not allowed, got {len(containers)}"
        )
    if (model := predictor.model) is not None:
        yield from parallel_env(model.container, "spec.predictor.model")
        yield from unknown_gpus(model.container, "spec.predictor.model", annotations, gpus)
        scheme = (model.storage_uri or "").split("://")[0]
        if model.storage_uri is None:
            yield Problem("spec.predictor.model.storageUri", "StorageURI must be set for multinode")
        elif scheme not in ("pvc", "oci"):
            yield Problem(
                "spec.predictor.model.storageUri",
                f"Multinode only supports 'pvc' and 'oci' Storage Protocol, got {model.storage_uri!r}",
            )
        if annotations.get(AUTOSCALER_CLASS) != AutoscalerClass.NONE:
            yield Problem(f"metadata.annotations[{AUTOSCALER_CLASS}]", "Multinode only supports 'none' autoscaler")
    yield from parallel_sizes(worker.pipeline_parallel_size, worker.tensor_parallel_size, path)
    for index, container in enumerate(containers):
        yield from unknown_gpus(container, f"{path}.containers[{index}]", annotations, gpus)


def _changes(new: InferenceService, old: InferenceService) -> Iterator[Problem]:
    recorded, asked = current_name(old.status.deployment_mode), new.metadata.annotations.get(DEPLOYMENT_MODE)
    if recorded and asked is not None and asked != recorded:
        yield Problem(
            f"metadata.annotations[{DEPLOYMENT_MODE}]",
            f"deploymentMode cannot be changed from '{recorded}' to '{asked}'; delete the service and create it anew",
        )
    before, after = old.spec.predictor, new.spec.predictor
    if before.name != after.name and _uri(before) == _uri(after):
        yield Problem("spec.predictor.name", "change requires a model change (e.g. storageUri)")


def _uri(predictor: PredictorSpec) -> str:
    chosen = implementations(predictor)
    if predictor.model is not None and predictor.model.storage_uri is not None:
        return predictor.model.storage_uri
    return (chosen[0].storage_uri or "") if chosen else ""


def canaries(spec: InferenceServiceSpec, annotations: Mapping[str, str]) -> Iterator[Problem]:
    if not spec.canary:
        return
    if annotations.get(DEPLOYMENT_MODE) != DeploymentMode.STANDARD:
        yield Problem(
            "spec.canary",
            f"is only supported in Standard deployment mode; set the annotation {DEPLOYMENT_MODE}: Standard",
        )
    chosen = implementations(spec.predictor)
    if spec.predictor.model is None and not (chosen and chosen[0].storage_uri is not None):
        yield Problem("spec.canary", "requires a stable predictor with a model: multi-model serving has no canaries")
    names = [canary.predictor.name for canary in spec.canary]
    for index, canary in enumerate(spec.canary):
        path = f"spec.canary[{index}]"
        yield from _name(names, index, spec.predictor, path)
        yield from _one(canary, spec.predictor, path)
    total = sum(canary.traffic_percent for canary in spec.canary)
    if total > 100:
        yield Problem("spec.canary", f"sum of canary trafficPercent values ({total}) must be <= 100")


def _name(names: list[str], index: int, stable: PredictorSpec, path: str) -> Iterator[Problem]:
    name = names[index]
    if not name:
        yield Problem(f"{path}.predictor.name", "is required")
    elif name in names[:index]:
        yield Problem(f"{path}.predictor.name", f'"{name}" is duplicated: another canary has it')
    elif name == stable.name:
        yield Problem(f"{path}.predictor.name", f'"{name}" conflicts with stable predictor name')


def _one(canary: CanarySpec, stable: PredictorSpec, path: str) -> Iterator[Problem]:
    predictor = canary.predictor
    if not 0 <= canary.traffic_percent <= 100:
        yield Problem(f"{path}.trafficPercent", f"must be between 0 and 100, got {canary.traffic_percent}")
    path = f"{path}.predictor"
    yield from component_problems(predictor, path)
    if predictor.worker_spec is not None:
        yield Problem(f"{path}.workerSpec", "must not be set: multi-node is not yet supported for canary")
    if predictor.max_replicas > 0:
        yield Problem(f"{path}.maxReplicas", "must not be set: canary uses fixed replicas (minReplicas)")
    for field, value in zip(
        _SCALING, (predictor.scale_target, predictor.scale_metric, predictor.auto_scaling), strict=True
    ):
        if value is not None:
            yield Problem(f"{path}.{field}", "must not be set: canary uses fixed replicas (minReplicas)")
    most = stable.least_replicas
    if predictor.min_replicas is not None and predictor.min_replicas > most:
        yield Problem(
            f"{path}.minReplicas",
            f"minReplicas ({predictor.min_replicas}) must not exceed stable predictor minReplicas ({most})",
        )

"""What admission says about an InferenceService beyond its types: names that leave no room, and fields without effect.

Both depend on the mode that a service is deployed in, and so on the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from isvc.api import InferenceService
from isvc.api.annotations import AUTOSCALER_CLASS, AutoscalerClass
from isvc.api.modes import DeploymentMode, mode_of
from isvc.api.validation import Problem
from isvc.kube.objects import Object
from isvc.serving import names
from isvc.serving.config import Config
from isvc.serving.hosts import is_hidden, longest_label
from isvc.serving.refused import Refused

_LONGEST_LABEL: Final = 63


def mode(service: InferenceService, config: Config) -> DeploymentMode:
    return mode_of(service.metadata.annotations, service.status.deployment_mode, config.deploy.default_mode)


def name_problems(service: Object, decoded: InferenceService, config: Config) -> Iterator[Problem]:
    """Refuses a name from which no valid label of a workload, or no host, can be made. `service` has its namespace."""
    if mode(decoded, config) != DeploymentMode.STANDARD:
        return
    name = decoded.metadata.name
    excess = max(_label_lengths(service, decoded, config)) - _LONGEST_LABEL
    if excess > 0:
        most = len(name) - excess
        said = f"must be no more than {most} characters here, got {len(name)}"
        if most <= 0:
            said = "cannot be short enough here: that of the namespace is too long"
        made = f"names and hosts of the service's components are made from it, which have {_LONGEST_LABEL} at most"
        yield Problem("metadata.name", f"{said}: {made}")


def _label_lengths(service: Object, decoded: InferenceService, config: Config) -> Iterator[int]:
    """Yields the length of every label and host that the name becomes a part of."""
    for workload in _workloads(decoded):
        yield len(names.app(workload))
        if not is_hidden(service, config.ingress):
            with suppress(Refused):  # a template that fails is reported in the status
                yield longest_label(workload, service, config.ingress)


def _workloads(service: InferenceService) -> Iterator[str]:
    spec, name = service.spec, service.metadata.name
    yield names.predictor(name, spec.predictor.name)
    yield from (names.predictor(name, canary.predictor.name) for canary in spec.canary)
    if spec.transformer is not None:
        yield names.transformer(name)
    if spec.explainer is not None:
        yield names.explainer(name)


def warnings(service: InferenceService, config: Config) -> Iterator[str]:
    """Names fields that are accepted, and that do nothing in the service's mode."""
    chosen = mode(service, config)
    if chosen == DeploymentMode.KNATIVE:
        return
    spec = service.spec
    parts = {"predictor": spec.predictor, "transformer": spec.transformer, "explainer": spec.explainer}
    for kind, component in parts.items():
        if component is None:
            continue
        if component.canary_traffic_percent is not None:
            yield (
                f"spec.{kind}.canaryTrafficPercent has no effect in {chosen} mode, only in Knative mode;"
                " use spec.canary to try a new version"
            )
        if component.min_replicas == 0 and not _scales_to_zero(service.metadata.annotations):
            yield (
                f"spec.{kind}.minReplicas: 0 does not scale to zero in {chosen} mode, only in Knative mode or with"
                " KEDA; one replica goes on running"
            )


def _scales_to_zero(annotations: Mapping[str, str]) -> bool:
    """Returns whether it does: KEDA does, and a fixed number of replicas is what it is."""
    return annotations.get(AUTOSCALER_CLASS) in (AutoscalerClass.KEDA, AutoscalerClass.NONE, AutoscalerClass.EXTERNAL)

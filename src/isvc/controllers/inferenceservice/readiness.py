"""How ready the components of a service are: what its ingress is planned on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from isvc.api.modes import DeploymentMode
from isvc.controllers.inferenceservice.observed import Observed
from isvc.kube.conditions import TRUE
from isvc.kube.objects import labels_of
from isvc.serving import knative, names


class ComponentReadiness(NamedTuple):
    """Whether a component is ready (True, False or Unknown), and the URL that it was given."""

    status: str
    url: str = ""


Readiness: TypeAlias = Mapping[str, ComponentReadiness]  # by kind of component


def assume_ready(observed: Observed) -> Readiness:
    """The readiness of a service whose components are all up, for planning without a cluster."""
    spec = observed.service.spec
    workloads = {names.PREDICTOR: names.predictor(observed.name, spec.predictor.name)}
    if spec.transformer is not None:
        workloads[names.TRANSFORMER] = names.transformer(observed.name)
    if spec.explainer is not None:
        workloads[names.EXPLAINER] = names.explainer(observed.name)
    return {kind: ComponentReadiness(TRUE, _url(observed, workload)) for kind, workload in workloads.items()}


def _url(observed: Observed, workload: str) -> str:
    """The URL that Knative would give a component; elsewhere no ingress depends on one."""
    if observed.mode is DeploymentMode.STANDARD:
        return ""
    return knative.default_url(workload, observed.namespace, labels_of(observed.raw), observed.knative_domains)

"""Standard mode: a component is a Deployment with a Service, scaled by an HPA, by KEDA or by nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode, current_name, parse_mode
from isvc.controllers.inferenceservice.observed import Live, Observed
from isvc.controllers.inferenceservice.planned import Deployed, Planned, ServiceStop, stop_at
from isvc.controllers.inferenceservice.status import model
from isvc.controllers.inferenceservice.status.edit import StatusEdit
from isvc.engine.plan import Child
from isvc.kube.objects import Object, labels_of, name_of
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SERVICES, Resource
from isvc.serving import names
from isvc.serving.hosts import render_domain
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import OPENTELEMETRY_COLLECTORS, SCALED_OBJECTS
from isvc.serving.workload.autoscaler import AutoscalerRefused, autoscaler
from isvc.serving.workload.collector import collector
from isvc.serving.workload.component import Component
from isvc.serving.workload.deployment import deployments
from isvc.serving.workload.readiness import readiness
from isvc.serving.workload.service import services

KINDS: Final[frozenset[Resource]] = frozenset(
    {DEPLOYMENTS, SERVICES, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, OPENTELEMETRY_COLLECTORS}
)
NEEDS: Final[frozenset[Resource]] = frozenset()
_MISSING: Final = {
    SCALED_OBJECTS: "failed to get existing KEDA autoscaler",
    OPENTELEMETRY_COLLECTORS: "failed to get existing OTel Collector resource",
}


def deploy(observed: Observed, kind: str, component: Component) -> Deployed:
    """Returns all children of a component, up to the first whose kind this cluster does not have."""
    config = observed.config
    ingress = config.ingress
    asked = component.annotations.get(DEPLOYMENT_MODE, "")
    if asked and parse_mode(asked) is not DeploymentMode.STANDARD:
        return _refuse(kind, component, f"unsupported deployment mode for workload: {current_name(asked)}")
    try:
        scaler = autoscaler(component, config)
        host = render_domain(
            component.name,
            component.namespace,
            component.labels,
            component.annotations,
            ingress.ingress_domain,
            ingress,
        )
    except AutoscalerRefused as error:
        return _refuse(kind, component, error.message)
    except Refused as error:
        return _refuse(kind, component, f"failed creating host name: {error.message}")
    wanted: list[Child | None] = [
        *services(component, headless=config.service.service_cluster_ip_none),
        collector(component, config),
        *deployments(component, config.deploy),
        scaler,
    ]
    children: list[Child] = []
    for child in wanted:
        if child is None:
            continue
        if child.resource in _MISSING and child.resource not in observed.served:
            return Deployed(kind, component, tuple(children), f"http://{host}", _missing_kind(kind, child.resource))
        children.append(child)
    return Deployed(kind, component, tuple(children), f"http://{host}")


def _refuse(kind: str, component: Component, what: str) -> Deployed:
    message = f"fails to create NewRawKubeReconciler for {kind}: {what}"
    return Deployed(kind, component, (), "", stop_at(kind, message))


def _missing_kind(kind: str, resource: Resource) -> ServiceStop:
    what = f'no matches for kind "{resource.kind}" in version "{resource.api_version}"'
    message = f"fails to reconcile {kind}: {_MISSING[resource]}: {what}"
    return stop_at(kind, message)


def report(edit: StatusEdit, deployed: Deployed, live: Live) -> None:
    found = readiness(_live(deployed, live))
    entry = edit.component(deployed.kind)
    if found.status == "True":
        entry["url"] = deployed.url
    edit.mark_component(deployed.kind, *found)


def report_model(edit: StatusEdit, deployed: Deployed, pods: Sequence[Object], live: Live) -> None:
    app = names.app(deployed.component.name)
    model.propagate(edit, [pod for pod in pods if labels_of(pod).get("app") == app])


def summarize(edit: StatusEdit, observed: Observed, planned: Planned) -> None:
    """Deployments of several components have nothing in common to report."""


def _live(deployed: Deployed, live: Live) -> list[Object]:
    wanted = (name_of(child.manifest) for child in deployed.children if child.resource == DEPLOYMENTS)
    return [live.get((DEPLOYMENTS, name), {}) for name in wanted]

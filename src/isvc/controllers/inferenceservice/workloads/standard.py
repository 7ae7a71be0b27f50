"""Standard mode: a component is a Deployment with a Service, scaled by an HPA, by KEDA or by nobody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from isvc.api.annotations import HTTP_METRIC, AutoscalerClass
from isvc.api.modes import DEPLOYMENT_MODE, DeploymentMode, current_name, parse_mode
from isvc.controllers.inferenceservice.observed import Live, Observed
from isvc.controllers.inferenceservice.planned import Deployed, Planned, ServiceStop, stop_at
from isvc.controllers.inferenceservice.status import model
from isvc.controllers.inferenceservice.status.edit import READY_OF, StatusEdit
from isvc.engine.plan import Child
from isvc.kube.conditions import FALSE, TRUE, UNKNOWN
from isvc.kube.objects import Object, labels_of, name_of
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, POD_DISRUPTION_BUDGETS, SERVICES, Resource
from isvc.serving import names
from isvc.serving.hosts import domain_name
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import INTERCEPTOR_ROUTES, OPENTELEMETRY_COLLECTORS, REFERENCE_GRANTS, SCALED_OBJECTS
from isvc.serving.workload.autoscaler import autoscaler
from isvc.serving.workload.collector import collector
from isvc.serving.workload.component import Component, WorkloadRefused
from isvc.serving.workload.deployment import deployments
from isvc.serving.workload.disruption import component_budget
from isvc.serving.workload.http_metric import check_ports, http_metric
from isvc.serving.workload.readiness import Readiness, readiness
from isvc.serving.workload.scalers import NO_INTERCEPTOR, SCALING_READY, scaling_readiness
from isvc.serving.workload.service import services
from isvc.serving.workload.sleep import ASLEEP, left_asleep, sleep

KINDS: Final[frozenset[Resource]] = frozenset(
    {
        DEPLOYMENTS,
        SERVICES,
        HORIZONTAL_POD_AUTOSCALERS,
        POD_DISRUPTION_BUDGETS,
        SCALED_OBJECTS,
        OPENTELEMETRY_COLLECTORS,
        INTERCEPTOR_ROUTES,
        REFERENCE_GRANTS,
    }
)
NEEDS: Final[frozenset[Resource]] = frozenset()
_MISSING: Final = {
    SCALED_OBJECTS: "failed to get existing KEDA autoscaler",
    OPENTELEMETRY_COLLECTORS: "failed to get existing OTel Collector resource",
}


def deploy(observed: Observed, kind: str, component: Component) -> Deployed:
    """Returns all children of a component, up to the first whose kind this cluster does not have."""
    config = observed.config
    asked = component.annotations.get(DEPLOYMENT_MODE, "")
    if asked and parse_mode(asked) is not DeploymentMode.STANDARD:
        return _refuse(kind, component, f"unsupported deployment mode for workload: {current_name(asked)}")
    try:
        metric = http_metric(component)
        scaler, budget = autoscaler(component, config, metric), component_budget(component, config.deploy)
        reached = services(component, headless=config.service.service_cluster_ip_none)
        if metric is not None:
            check_ports(reached[0].manifest)
        host = domain_name(component.name, {"metadata": component.metadata()}, config.ingress)
    except WorkloadRefused as error:
        return _refuse(kind, component, error.message)
    except Refused as error:
        return _refuse(kind, component, f"failed creating host name: {error.message}")
    wanted: list[Child | None] = [
        *reached,
        collector(component, config),
        *deployments(component, config.deploy, woken=_is_left_asleep(observed, component)),
        budget,
        scaler,
    ]
    children: list[Child] = []
    for child in wanted:
        if child is None:
            continue
        if child.resource in _MISSING and child.resource not in observed.served:
            return Deployed(kind, component, tuple(children), f"http://{host}", _missing_kind(kind, child.resource))
        if child is scaler and metric is not None and INTERCEPTOR_ROUTES not in observed.served:
            return Deployed(kind, component, tuple(children), f"http://{host}", _missing_add_on(kind), metric)
        children.append(child)
    return Deployed(kind, component, tuple(children), f"http://{host}", metric=metric)


def _is_left_asleep(observed: Observed, component: Component) -> bool:
    """Returns whether an HPA is to take over from KEDA while there is no pod."""
    name = component.name
    scaled, workload = observed.live.get((SCALED_OBJECTS, name)), observed.live.get((DEPLOYMENTS, name))
    return component.autoscaler == AutoscalerClass.HPA and left_asleep(workload, scaled)


def _refuse(kind: str, component: Component, what: str) -> Deployed:
    message = f"fails to create NewRawKubeReconciler for {kind}: {what}"
    return Deployed(kind, component, (), "", stop_at(kind, message))


def _missing_kind(kind: str, resource: Resource) -> ServiceStop:
    what = f'no matches for kind "{resource.kind}" in version "{resource.api_version}"'
    message = f"fails to reconcile {kind}: {_MISSING[resource]}: {what}"
    return stop_at(kind, message)


def _missing_add_on(kind: str) -> ServiceStop:
    what = f"the {kind} is to be scaled by requests ({HTTP_METRIC}), which needs KEDA's HTTP add-on"
    message = f"{what}: there is no {INTERCEPTOR_ROUTES.kind} in {INTERCEPTOR_ROUTES.api_version}"
    remedy = "install the add-on in version 0.14 or later, or remove the annotation"
    return replace(stop_at(kind, f"{message}; {remedy}", "HTTPAddOnNotInstalled"), remedy=remedy)


def report(edit: StatusEdit, observed: Observed, deployed: Deployed, live: Live) -> None:
    found = readiness(_live(deployed, live))
    if deployed.metric is not None:
        [workload] = _live(deployed, live)
        found = sleep(workload, edit.reason(READY_OF[deployed.kind]), edit.now) or found
        scaling = _scaling(observed, deployed)
        if scaling.status == FALSE and (found == ASLEEP or scaling.reason == NO_INTERCEPTOR):
            found = scaling  # nobody wakes it, or no request gets there
    entry = edit.component(deployed.kind)
    if found.status == TRUE:
        entry["url"] = deployed.url
    edit.mark_component(deployed.kind, *found)


def report_model(edit: StatusEdit, deployed: Deployed, pods: Sequence[Object], live: Live) -> None:
    if edit.reason(READY_OF[deployed.kind]) == ASLEEP.reason:
        return  # what was said of the model when it last ran still holds
    app = names.app(deployed.component.name)
    model.propagate(edit, [pod for pod in pods if labels_of(pod).get("app") == app])


def summarize(edit: StatusEdit, observed: Observed, planned: Planned) -> None:
    """Says whether those are there who scale by requests; else Deployments have nothing in common to report."""
    scaled = [_scaling(observed, each) for each in planned.deployed.values() if each.metric is not None]
    if not scaled:
        edit.conditions.clear(SCALING_READY)
        return
    edit.conditions.set(SCALING_READY, *min(scaled, key=lambda each: (FALSE, UNKNOWN, TRUE).index(each.status)))


def _scaling(observed: Observed, deployed: Deployed) -> Readiness:
    scaled = observed.live.get((SCALED_OBJECTS, deployed.component.name)) or {}
    return scaling_readiness(scaled, observed.away, observed.now)


def _live(deployed: Deployed, live: Live) -> list[Object]:
    wanted = (name_of(child.manifest) for child in deployed.children if child.resource == DEPLOYMENTS)
    return [live.get((DEPLOYMENTS, name), {}) for name in wanted]

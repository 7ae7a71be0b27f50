"""Knative mode: a component is a Knative Service, which makes a revision of every change of its template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from isvc.api.modes import DeploymentMode
from isvc.controllers.inferenceservice.observed import Live, Observed
from isvc.controllers.inferenceservice.planned import Deployed, Planned
from isvc.controllers.inferenceservice.status import model
from isvc.controllers.inferenceservice.status.edit import CONFIGURATION_READY, READY_OF, ROUTE_READY, StatusEdit
from isvc.controllers.inferenceservice.status.revisions import component_status
from isvc.kube.conditions import FALSE, TRUE, find, is_true
from isvc.kube.objects import Object, dig, labels_of, without
from isvc.kube.resource import Resource
from isvc.serving import knative
from isvc.serving.knative import Revision, scale_annotations
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.serving.workload.component import Component

KINDS: Final[frozenset[Resource]] = frozenset({KNATIVE_SERVICES})
NEEDS: Final[frozenset[Resource]] = KINDS
REVISION_LABEL: Final = "serving.knative.dev/revision"


def deploy(observed: Observed, kind: str, component: Component) -> Deployed:
    spec = component.spec
    given = knative.checked_initial_scale(component.annotations, observed.allows_zero_initial_scale)
    revision = Revision(
        pod=component.pod,
        labels=without(component.labels, observed.config.inference_service.service_label_disallowed_list),
        annotations=scale_annotations(spec, given),
        timeout=spec.timeout,
        first_byte=True,
        concurrency=spec.container_concurrency,
    )
    rolled_out = dig(observed.raw, "status", "components", kind, "latestRolledoutRevision") or ""
    tagged = given.get(knative.TAG_ROUTING_ANNOTATION) == "true"
    traffic = knative.traffic(spec.canary_traffic_percent, rolled_out, tagged=tagged)
    child = knative.service(component.name, component.namespace, component.labels, revision, traffic)
    return Deployed(kind, component, (child,), url="")


def report(edit: StatusEdit, observed: Observed, deployed: Deployed, live: Live) -> None:
    """Reports what the Knative Service says; a condition that it does not have (yet) leaves ours as it was."""
    kind, status = deployed.kind, _status(deployed, live)
    entry = edit.component(kind)
    updated = component_status(entry, status, ready=is_true(_conditions(status), "Ready"))
    entry.clear()
    entry.update(updated)
    names = {
        "Ready": READY_OF[kind],
        "RoutesReady": ROUTE_READY[kind],
        "ConfigurationsReady": CONFIGURATION_READY[kind],
    }
    for theirs, ours in names.items():
        if condition := find(_conditions(status), theirs):
            edit.mark(ours, condition["status"], condition.get("reason", ""), condition.get("message", ""))


def report_model(edit: StatusEdit, deployed: Deployed, pods: Sequence[Object], live: Live) -> None:
    entry = edit.component(deployed.kind)
    newest = entry.get("latestCreatedRevision", "")
    failed = any(condition.get("status") == FALSE for condition in _conditions(_status(deployed, live)))
    model.propagate(
        edit,
        [pod for pod in pods if newest and labels_of(pod).get(REVISION_LABEL) == newest],
        settled=newest == entry.get("latestReadyRevision", ""),
        failed=failed,
    )


def summarize(edit: StatusEdit, observed: Observed, planned: Planned) -> None:
    """Reports whether the routes and the newest revisions of all components are ready.

    The last that is not says why.
    """
    if observed.mode is not DeploymentMode.KNATIVE:
        return
    kinds = [kind for kind in READY_OF if kind in planned.deployed]
    for total, each in (("RoutesReady", ROUTE_READY), ("LatestDeploymentReady", CONFIGURATION_READY)):
        status, reason = TRUE, ""
        for kind in kinds:
            if edit.conditions.status(each[kind]) != TRUE:
                status, reason = edit.conditions.status(each[kind]), f"{each[kind]} not ready"
        edit.mark(total, status, reason)


def _status(deployed: Deployed, live: Live) -> Object:
    service = live.get((KNATIVE_SERVICES, deployed.component.name)) or {}
    status: Object = service.get("status") or {}
    return status


def _conditions(status: Object) -> list[Object]:
    conditions: list[Object] = status.get("conditions") or []
    return conditions

"""What should run for a graph, decided from what was observed and nothing else."""

from __future__ import annotations

from typing import Final

from isvc.api.annotations import is_stopped
from isvc.api.components import ComponentExtensionSpec
from isvc.api.inferencegraph import InferenceGraphSpec
from isvc.api.modes import DeploymentMode
from isvc.controllers.inferencegraph.observed import Observed
from isvc.controllers.inferencegraph.resolve import resolved
from isvc.controllers.inferencegraph.router import pod_spec
from isvc.engine.plan import Answer, Child, Hold, Part, Plan, Retire, Want
from isvc.kube.objects import Object, annotations_of, labels_of, name_of, namespace_of, without
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SERVICES
from isvc.serving import knative
from isvc.serving.endpoints import NoEndpoint
from isvc.serving.knative import Revision, Scale
from isvc.serving.thirdparty import KNATIVE_SERVICES, SCALED_OBJECTS
from isvc.serving.workload.autoscaler import autoscaler
from isvc.serving.workload.component import Component
from isvc.serving.workload.deployment import deployments
from isvc.serving.workload.service import services

SERVICE_NOT_READY: Final = "ServiceNotReady"
KNATIVE_MISSING: Final = "ServerlessModeRejected"
GRAPH_LABEL = "serving.kserve.io/inferencegraph"
_KIND_LABEL = "serving.kserve.io/kind"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_STANDARD_KINDS = frozenset({DEPLOYMENTS, SERVICES, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS})
_KNATIVE_KINDS = frozenset({KNATIVE_SERVICES})


def plan(observed: Observed) -> Plan:
    """The router in the graph's mode; whatever ran it in another mode goes."""
    answer = _answer(observed)
    if observed.mode is DeploymentMode.STANDARD:
        return Plan((Part("router", answer, _STANDARD_KINDS), Part("other mode", _other(answer), _KNATIVE_KINDS)))
    return Plan((Part("router", answer, _KNATIVE_KINDS), Part("other mode", _other(answer), _STANDARD_KINDS)))


def _answer(observed: Observed) -> Answer:
    if is_stopped(observed.graph):
        return Retire("stopped")
    try:
        spec = resolved(observed.spec, observed.services.get, observed.runtimes.get)
    except NoEndpoint as missing:
        return Hold(SERVICE_NOT_READY, str(missing))
    if observed.mode is DeploymentMode.STANDARD:
        return Want(tuple(_standard(observed, spec)))
    if not observed.has_knative:
        message = "It is not possible to use Knative deployment mode when Knative Services are not available"
        return Hold(KNATIVE_MISSING, message)
    return Want((_knative(observed, spec),))


def _other(answer: Answer) -> Answer:
    return answer if isinstance(answer, Hold) else Retire("the graph is deployed in another mode")


def _annotations(graph: Object) -> dict[str, str]:
    return without(annotations_of(graph), (_LAST_APPLIED,))


def _standard(observed: Observed, spec: InferenceGraphSpec) -> list[Child]:
    graph, config = observed.graph, observed.config
    component = Component(
        name=name_of(graph),
        namespace=namespace_of(graph),
        labels={**labels_of(graph), GRAPH_LABEL: name_of(graph)},
        annotations=_annotations(graph),
        pod=pod_spec(spec, config.router, name=name_of(graph)),
        spec=ComponentExtensionSpec(
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            scale_metric=spec.scale_metric,
            scale_target=spec.scale_target,
        ),
    )
    scaler = autoscaler(component, config)
    children = services(component, headless=config.service.service_cluster_ip_none)
    return [*children, *deployments(component, config.deploy), *([scaler] if scaler else [])]


def _knative(observed: Observed, spec: InferenceGraphSpec) -> Child:
    graph = observed.graph
    given = knative.checked_initial_scale(_annotations(graph), zero_allowed=observed.zero_initial_scale)
    labels = without(labels_of(graph), (knative.VISIBILITY_LABEL,))
    revision = Revision(
        pod=pod_spec(spec, observed.config.router),
        labels={**labels, GRAPH_LABEL: name_of(graph), _KIND_LABEL: "InferenceGraph"},
        annotations=Scale.of(spec).annotations(given),
        timeout=spec.timeout,
    )
    lifted = (knative.ENABLE_PASSTHROUGH,)
    return knative.service(name_of(graph), namespace_of(graph), labels_of(graph), revision, lifted=lifted)

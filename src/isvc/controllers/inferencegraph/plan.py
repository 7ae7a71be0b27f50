"""What should run for a graph, decided from what was observed and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from isvc.api.annotations import GRAPH_LABEL, is_stopped
from isvc.api.inferencegraph import STEP_POLICIES, InvalidPolicies, StepPolicy, read_policies
from isvc.api.inferenceservice.components import ComponentExtensionSpec
from isvc.api.modes import DeploymentMode
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, SERVING_RUNTIMES
from isvc.controllers.inferencegraph.observe import Observed
from isvc.controllers.inferencegraph.resolve import Resolved, resolve
from isvc.controllers.inferencegraph.router import pod_spec
from isvc.engine.plan import Child, Part, Plan, Reference, Retire, Stop, Want
from isvc.kube.objects import LAST_APPLIED, Key, Object, annotations_of, labels_of, name_of, namespace_of, without
from isvc.kube.readiness import READY
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SERVICES
from isvc.serving import hosts, knative
from isvc.serving.endpoints import NoEndpoint
from isvc.serving.knative import Revision, scale_annotations
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import KNATIVE_SERVICES, SCALED_OBJECTS
from isvc.serving.workload.autoscaler import autoscaler
from isvc.serving.workload.component import Component
from isvc.serving.workload.deployment import deployments
from isvc.serving.workload.service import services

SERVICE_NOT_READY: Final = "ServiceNotReady"
KNATIVE_MISSING: Final = "ServerlessModeRejected"
INVALID: Final = "InvalidSpec"
ROUTER: Final = "router"
_KIND_LABEL = "serving.kserve.io/kind"
_STANDARD_KINDS = frozenset({DEPLOYMENTS, SERVICES, HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS})
_KNATIVE_KINDS = frozenset({KNATIVE_SERVICES})
CHILDREN: Final = _STANDARD_KINDS | _KNATIVE_KINDS


def plan(observed: Observed) -> Plan:
    return replace(_plan(observed), references=_references(observed))


def _references(observed: Observed) -> frozenset[Reference]:
    """Returns the runtimes that services of the graph name, in their namespace or the cluster's."""
    models = (service.spec.predictor.model for service in observed.services.values())
    names = [model.runtime for model in models if model is not None and model.runtime]
    local = {(SERVING_RUNTIMES, Key(observed.namespace, name)) for name in names}
    return frozenset(local | {(CLUSTER_SERVING_RUNTIMES, Key("", name)) for name in names})


def _plan(observed: Observed) -> Plan:
    """Returns the router in the graph's mode; whatever ran it in another mode goes."""
    kinds, others = _STANDARD_KINDS, _KNATIVE_KINDS
    if observed.mode is not DeploymentMode.STANDARD:
        kinds, others = others, kinds
    if is_stopped(observed.raw):
        return Plan((Part(ROUTER, Retire("stopped"), kinds | others),))
    try:
        policies = read_policies(annotations_of(observed.raw), observed.spec)
        resolved = resolve(observed.spec, observed.services.get, observed.runtimes.get, observed.llm_service)
        children = _children(observed, resolved, policies)
    except InvalidPolicies as error:
        return _plan_of_stop(
            Stop(ROUTER, READY, INVALID, f"annotation {STEP_POLICIES}: {error}", "correct the annotation")
        )
    except NoEndpoint as missing:
        return _plan_of_stop(Stop(ROUTER, READY, SERVICE_NOT_READY, str(missing), missing.remedy))
    except Refused as refused:
        return _plan_of_stop(Stop(ROUTER, READY, INVALID, refused.message, refused.remedy or "correct the graph"))
    if children is None:
        message = "It is not possible to use Knative deployment mode when Knative Services are not available"
        remedy = "install Knative Serving, or create the graph anew in Standard mode"
        return _plan_of_stop(Stop(ROUTER, READY, KNATIVE_MISSING, message, remedy))
    other = Part("other mode", Retire("the graph is deployed in another mode"), others)
    return Plan((Part(ROUTER, Want(children), kinds), other))


def _children(observed: Observed, resolved: Resolved, policies: Mapping[str, StepPolicy]) -> tuple[Child, ...] | None:
    """Returns what runs the graph; None where its mode needs Knative, and that is not there."""
    if observed.mode is DeploymentMode.STANDARD:
        return tuple(_standard(observed, resolved, policies))
    return (_knative(observed, resolved, policies),) if observed.has_knative else None


def _plan_of_stop(stop: Stop) -> Plan:
    return Plan((Part(stop.part, stop.hold, CHILDREN),), stop)


def _annotations(graph: Object) -> dict[str, str]:
    return without(annotations_of(graph), (LAST_APPLIED,))


def _standard(observed: Observed, resolved: Resolved, policies: Mapping[str, StepPolicy]) -> list[Child]:
    graph, config, spec = observed.raw, observed.config, observed.spec
    hosts.public_place(observed.name, graph, config.ingress)  # a host that there cannot be is refused before all
    component = Component(
        name=name_of(graph),
        namespace=namespace_of(graph),
        labels={**labels_of(graph), GRAPH_LABEL: name_of(graph)},
        annotations=_annotations(graph),
        pod=pod_spec(resolved, policies, config.router, name=name_of(graph)),
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


def _knative(observed: Observed, resolved: Resolved, policies: Mapping[str, StepPolicy]) -> Child:
    graph, spec = observed.raw, observed.spec
    given = knative.checked_initial_scale(_annotations(graph), observed.allows_zero_initial_scale)
    labels = without(labels_of(graph), (knative.VISIBILITY_LABEL,))
    revision = Revision(
        pod=pod_spec(resolved, policies, observed.config.router),
        labels={**labels, GRAPH_LABEL: name_of(graph), _KIND_LABEL: "InferenceGraph"},
        annotations=scale_annotations(spec, given),
        timeout=spec.timeout,
    )
    lifted = (knative.ENABLE_PASSTHROUGH,)
    return knative.service(name_of(graph), namespace_of(graph), labels_of(graph), revision, lifted=lifted)

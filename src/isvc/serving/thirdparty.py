"""The kinds of other projects, how they are addressed, and one row for each project that managers work with.

All of them are optional: a cluster may have them later, or never. What is watched, planned and pruned, the roles of
managers, `isvc preflight`, `isvc render`, diagnosis and the dashboard follow from a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from isvc.api.modes import DeploymentMode
from isvc.kube.resource import Resource

HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
KNATIVE_SERVICES = Resource("serving.knative.dev", "v1", "services", "Service")
VIRTUAL_SERVICES = Resource("networking.istio.io", "v1beta1", "virtualservices", "VirtualService")
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")
INTERCEPTOR_ROUTES = Resource("http.keda.sh", "v1beta1", "interceptorroutes", "InterceptorRoute")
OPENTELEMETRY_COLLECTORS = Resource("opentelemetry.io", "v1beta1", "opentelemetrycollectors", "OpenTelemetryCollector")
GATEWAYS = Resource("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
GATEWAY_CLASSES = Resource("gateway.networking.k8s.io", "v1", "gatewayclasses", "GatewayClass", namespaced=False)
REFERENCE_GRANTS = Resource("gateway.networking.k8s.io", "v1beta1", "referencegrants", "ReferenceGrant")
INFERENCE_POOLS = Resource("inference.networking.k8s.io", "v1", "inferencepools", "InferencePool")
INFERENCE_POOLS_V1ALPHA2 = Resource("inference.networking.x-k8s.io", "v1alpha2", "inferencepools", "InferencePool")
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
CERTIFICATES = Resource("cert-manager.io", "v1", "certificates", "Certificate")


@dataclass(frozen=True, slots=True)
class Project:
    """Another project, the kinds of it that managers need, and what is lost without it.

    `ingress` is the module in `controllers/inferenceservice/ingress` that has services reached through the project, in
    deployment modes that are `routed`. In each the first project counts that the configuration chooses.
    """

    name: str
    resources: tuple[Resource, ...]
    needed_for: str
    ingress: str = ""
    routed: tuple[DeploymentMode, ...] = ()


PROJECTS: Final = (
    Project(
        "the Gateway API",
        (HTTP_ROUTES, GATEWAYS, REFERENCE_GRANTS),
        "routes with enableGatewayApi, and LLMs",
        ingress="gateway",
        routed=(DeploymentMode.STANDARD,),
    ),
    Project("Knative Serving", (KNATIVE_SERVICES,), "the deployment mode Knative"),
    Project(
        "Istio",
        (VIRTUAL_SERVICES,),
        "hosts of services in the deployment mode Knative",
        ingress="istio",
        routed=(DeploymentMode.KNATIVE, DeploymentMode.MODEL_MESH),
    ),
    Project("KEDA", (SCALED_OBJECTS,), "the autoscaler class keda"),
    Project("KEDA's HTTP add-on", (INTERCEPTOR_ROUTES,), "scaling by requests, also to zero, in Standard mode"),
    Project("the OpenTelemetry operator", (OPENTELEMETRY_COLLECTORS,), "scaling by metrics of pods"),
    Project("the Gateway API inference extension", (INFERENCE_POOLS,), "schedulers of LLMs"),
    Project("LeaderWorkerSet", (LEADER_WORKER_SETS,), "LLMs on several nodes"),
    Project("cert-manager", (CERTIFICATES,), "certificates that it issues; managers issue their own otherwise"),
)
OPTIONAL: Final = frozenset(resource for project in PROJECTS for resource in project.resources)

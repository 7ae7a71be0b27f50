"""How the kinds of other projects are addressed. All of them are optional: a cluster may have them later, or never."""

from __future__ import annotations

from isvc.kube.resource import Resource

HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
KNATIVE_SERVICES = Resource("serving.knative.dev", "v1", "services", "Service")
VIRTUAL_SERVICES = Resource("networking.istio.io", "v1beta1", "virtualservices", "VirtualService")
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")
OPENTELEMETRY_COLLECTORS = Resource("opentelemetry.io", "v1beta1", "opentelemetrycollectors", "OpenTelemetryCollector")
GATEWAYS = Resource("gateway.networking.k8s.io", "v1", "gateways", "Gateway")
GATEWAY_CLASSES = Resource("gateway.networking.k8s.io", "v1", "gatewayclasses", "GatewayClass", namespaced=False)
INFERENCE_POOLS = Resource("inference.networking.k8s.io", "v1", "inferencepools", "InferencePool")
INFERENCE_POOLS_V1ALPHA2 = Resource("inference.networking.x-k8s.io", "v1alpha2", "inferencepools", "InferencePool")
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")

OPTIONAL = frozenset({HTTP_ROUTES, KNATIVE_SERVICES, VIRTUAL_SERVICES, SCALED_OBJECTS, OPENTELEMETRY_COLLECTORS})

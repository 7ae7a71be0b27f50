"""What every component of an InferenceService can say about how it runs: replicas, scaling, logging, batching."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import Definition, Int, Int32, Int64, Quantity, Required, Schema, Spec, zero
from isvc.kube.objects import Object


class StorageSpec(Spec):
    """An object in an object store, found through a credential."""

    path: str | None = None
    """Path of the object, relative to the storage."""
    parameters: dict[str, str] | None = None
    """Settings laid over those of the credential."""
    key: str | None = None
    """Which entry of the storage secret to use."""


class LoggerStorageSpec(StorageSpec):
    """Where payloads are written to."""

    service_account_name: str | None = None
    """The service account whose credentials the logger uses."""


class LoggerSpec(Spec):
    """Sends requests and responses to a collector or to object storage."""

    url: str | None = None
    """Where to send payloads."""
    mode: Annotated[str, Schema(enum=["all", "request", "response"])] = ""
    """What to send: all, request or response."""
    metadata_headers: list[str] = []
    """HTTP headers that travel with each payload."""
    metadata_annotations: list[str] = []
    """Annotations of the service that travel with each payload."""
    storage: LoggerStorageSpec | None = None
    """Object storage to write payloads to, instead of a URL."""
    marshaller_url: str | None = None
    """A service that turns payloads into what is stored."""
    batch_size: Int | None = None
    """How many payloads are stored together."""
    batch_interval: str | None = None
    """How long an incomplete batch waits, for example 5s."""


class Batcher(Spec):
    """Joins single requests into one call of the model."""

    max_batch_size: Int | None = None
    """How many requests make a full batch."""
    max_latency: Int | None = None
    """How many milliseconds a batch waits to fill up."""
    timeout: Int | None = None
    """After how many seconds a batch fails."""


MetricTargetType = Annotated[str, Schema(enum=["Utilization", "Value", "AverageValue"])]


class MetricTarget(Spec):
    """What a metric should be."""

    type: MetricTargetType = ""
    """How the target is meant: Utilization, Value or AverageValue."""
    value: Quantity | None = None
    """Target value of the metric itself."""
    average_value: Quantity | None = None
    """Target of the average over all pods."""
    average_utilization: Int32 | None = None
    """Target of the average over all pods, in percent of what they request."""


class ResourceMetricSource(Spec):
    """CPU or memory of the pods."""

    name: Required[Annotated[str, Schema(enum=["cpu", "memory"])]] = zero(str)
    """cpu or memory."""
    target: Required[MetricTarget] = zero(MetricTarget)
    """What it should be."""


class AuthenticationRef(Spec):
    """Names the object that holds credentials."""

    name: Required[str] = zero(str)
    """Name of the TriggerAuthentication."""


class ExtMetricAuthentication(Spec):
    """How to log in to the metrics backend."""

    authentication_ref: Required[AuthenticationRef] = zero(AuthenticationRef)
    """Where the credentials are."""
    auth_modes: str = ""
    """How they are used: bearer, basic or tls."""


class ExternalMetrics(Spec):
    """A query that a metrics backend answers."""

    backend: Annotated[str, Schema(enum=["prometheus", "graphite"])] = ""
    """Which kind of backend answers."""
    server_address: str = ""
    """Where the backend is."""
    query: str = ""
    """What to ask it."""
    namespace: str = ""
    """Namespace of the query, for backends that know namespaces."""


class ExternalMetricSource(Spec):
    """A metric from outside the cluster's own metrics."""

    metric: Required[ExternalMetrics] = zero(ExternalMetrics)
    """Which metric."""
    authentication_ref: ExtMetricAuthentication | None = None
    """Credentials for the backend."""
    target: Required[MetricTarget] = zero(MetricTarget)
    """What it should be."""


class PodMetrics(Spec):
    """A metric that the pods themselves report."""

    backend: Annotated[str, Schema(enum=["opentelemetry"])] = ""
    """Which kind of collector gathers it."""
    server_address: str = ""
    """Where the collector is."""
    metric_names: list[str] = []
    """Which metrics to collect."""
    query: str = ""
    """Which value to compute from them."""
    operation_over_time: str = ""
    """How values are joined over time: last_one, avg, max, min, rate or count."""


class PodMetricSource(Spec):
    """A metric of each pod, averaged."""

    metric: Required[PodMetrics] = zero(PodMetrics)
    """Which metric."""
    target: Required[MetricTarget] = zero(MetricTarget)
    """What it should be."""


class MetricsSpec(Spec):
    """One metric to scale by: `type` and the one field that goes with it."""

    type: Required[Annotated[str, Schema(enum=["Resource", "External", "PodMetric"])]] = zero(str)
    """Resource, External or PodMetric."""
    resource: ResourceMetricSource | None = None
    """CPU or memory."""
    external: ExternalMetricSource | None = None
    """A query to a metrics backend."""
    podmetric: PodMetricSource | None = None
    """A metric that the pods report."""


class AutoScalingSpec(Spec):
    """Scaling by several metrics, through a HorizontalPodAutoscaler or KEDA."""

    metrics: list[MetricsSpec] = []
    """What to scale by."""
    behavior: Annotated[Object, Definition("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior")] | None = None
    """How fast to scale up and down."""


class ComponentExtensionSpec(Spec):
    """Fields that predictor, transformer and explainer share."""

    min_replicas: Int32 | None = None
    """Fewest pods. 1 unless said otherwise; 0 allows scaling to zero where the autoscaler can."""
    max_replicas: Int32 = 0
    """Most pods that autoscaling may start. 0 leaves it to the autoscaler."""
    scale_target: Int32 | None = None
    """What the scale metric should be per pod."""
    scale_metric: Annotated[str, Schema(enum=["cpu", "memory", "concurrency", "rps"])] | None = None
    """What to scale by: cpu and memory with Deployments, concurrency and rps with Knative."""
    scale_metric_type: MetricTargetType | None = None
    """How the target is meant: Utilization or AverageValue."""
    auto_scaling: AutoScalingSpec | None = None
    """Scaling by several metrics."""
    container_concurrency: Int64 | None = None
    """How many requests a pod handles at once; 0 means any number."""
    timeout: Int64 | None = None
    """After how many seconds a request fails."""
    canary_traffic_percent: Int64 | None = None
    """Share of traffic, in percent, for the newest revision; the previous one gets the rest."""
    logger: LoggerSpec | None = None
    """Payload logging."""
    batcher: Batcher | None = None
    """Request batching."""
    labels: dict[str, str] = {}
    """Labels for the component's pods."""
    annotations: dict[str, str] = {}
    """Annotations for the component's pods."""
    deployment_strategy: Annotated[Object, Definition("io.k8s.api.apps.v1.DeploymentStrategy")] | None = None
    """How new pods replace old ones, in Standard mode."""

    @property
    def least_replicas(self) -> int:
        return 1 if self.min_replicas is None else self.min_replicas

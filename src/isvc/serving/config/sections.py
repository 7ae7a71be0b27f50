"""The sections of the `inferenceservice-config` ConfigMap, each with its defaults.

Attribute names are the sections' own keys in snake_case. Empty strings mean "not set", as they do in the ConfigMap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, Self, dataclass_transform

import msgspec

from isvc.api.inferenceservice.components import LoggerStorageSpec
from isvc.api.modes import DeploymentMode, current_name
from isvc.api.validation.containers import KNOWN_GPUS
from isvc.kube.names import DNS_LABEL
from isvc.kube.objects import LAST_APPLIED, Object
from isvc.kube.quantity import Quantity, QuantityError

DISALLOWED_SERVICE_ANNOTATIONS = (
    "autoscaling.knative.dev/min-scale",
    "autoscaling.knative.dev/max-scale",
    "internal.serving.kserve.io/storage-initializer-sourceuri",
    LAST_APPLIED,
    "modelFormat",
)
DISALLOWED_SERVICE_LABELS = ("networking.knative.dev/visibility",)
_SomeNames = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
_AMOUNTS = ("cpu_limit", "memory_limit", "cpu_request", "memory_request")


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class Section(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A section. `problem` finds what its types cannot: (key, what is wrong)."""

    def problem(self) -> tuple[str, str] | None:
        return None

    def complete(self) -> Self:
        """Returns the section as it is used, with what is filled in where nothing is set."""
        return self


class Resources(Section):
    """CPU and memory, where an empty value means none is asked for."""

    cpu_limit: str = ""
    memory_limit: str = ""
    cpu_request: str = ""
    memory_request: str = ""

    @property
    def requirements(self) -> Object:
        """The same as a container has it."""
        return {
            "limits": {"cpu": self.cpu_limit, "memory": self.memory_limit},
            "requests": {"cpu": self.cpu_request, "memory": self.memory_request},
        }

    def problem(self) -> tuple[str, str] | None:
        return _bad_quantity(self, *_AMOUNTS)


class Sidecar(Resources):
    """A container that runs beside a model server, or in front of it."""

    image: str = "kserve/agent:latest"
    command: tuple[str, ...] = ()  # ours: the program, where the image has several; KServe's images know their own
    memory_request: str = "100Mi"
    memory_limit: str = "1Gi"
    cpu_request: str = "100m"
    cpu_limit: str = "1"

    @property
    def program(self) -> Object:
        """The image, and which of its programs to run."""
        return {"image": self.image, **({"command": list(self.command)} if self.command else {})}

    def problem(self) -> tuple[str, str] | None:
        return _bad_quantity(self, *_AMOUNTS, required=True)


class ExplainerConfig(Section):
    image: str = ""
    default_image_version: str = ""


class ExplainersConfig(Section):
    art: ExplainerConfig = ExplainerConfig()


class StorageInitializerConfig(Sidecar):
    image: str = "kserve/storage-initializer:latest"
    ca_bundle_config_map_name: str = ""
    ca_bundle_volume_mount_path: str = ""
    enable_modelcar: bool = False
    cpu_modelcar: str = ""
    memory_modelcar: str = ""
    uid_modelcar: int | None = None
    enable_oci_model_support: bool = False
    oci_model_mode: str = ""
    oci_insecure_registry: bool = False

    @property
    def oci_mode(self) -> str:
        """Returns how OCI images become models: modelcar, native, fetch, or "" when they are switched off."""
        if self.oci_model_mode:
            return self.oci_model_mode
        return "modelcar" if self.enable_modelcar or self.enable_oci_model_support else ""

    def problem(self) -> tuple[str, str] | None:
        if self.oci_model_mode not in ("", "modelcar", "native", "fetch"):
            return "ociModelMode", f"must be modelcar, native or fetch, got {self.oci_model_mode!r}"
        return super().problem() or _bad_quantity(self, "cpu_modelcar", "memory_modelcar")


class S3Config(Section):
    s3_access_key_id_name: str = msgspec.field(default="", name="s3AccessKeyIDName")
    s3_secret_access_key_name: str = ""
    s3_endpoint: str = ""
    s3_use_https: str = ""
    s3_region: str = ""
    s3_verify_ssl: str = msgspec.field(default="", name="s3VerifySSL")
    s3_use_virtual_bucket: str = ""
    s3_use_accelerate: str = ""
    s3_use_anonymous_credential: str = ""
    s3_ca_bundle_config_map: str = msgspec.field(default="", name="s3CABundleConfigMap")
    s3_ca_bundle: str = msgspec.field(default="", name="s3CABundle")


class GCSConfig(Section):
    gcs_credential_file_name: str = ""


class CredentialsConfig(Section):
    s3: S3Config = S3Config()
    gcs: GCSConfig = GCSConfig()
    storage_spec_secret_name: str = ""
    storage_secret_name_annotation: str = ""


class IngressConfig(Section):
    enable_gateway_api: bool = False
    kserve_ingress_gateway: str = ""
    ingress_gateway: str = ""
    knative_local_gateway_service: str = ""
    local_gateway: str = ""
    local_gateway_service: str = ""
    ingress_domain: str = ""
    ingress_class_name: str | None = None
    additional_ingress_domains: tuple[str, ...] | None = None
    domain_template: str = ""
    url_scheme: str = ""
    enable_llm_inference_service_tls: bool = msgspec.field(default=False, name="enableLLMInferenceServiceTLS")
    disable_istio_virtual_host: bool = False
    path_template: str = ""
    path_based_url: bool = msgspec.field(default=False, name="pathBasedURL")  # ours: see `has_path_urls`
    disable_ingress_creation: bool = False
    disable_http_route_timeout: bool = msgspec.field(default=False, name="disableHTTPRouteTimeout")
    model_based_routing_header_name: str = ""
    model_based_routing_mode: str = ""

    def problem(self) -> tuple[str, str] | None:
        if self.enable_gateway_api and (wrong := _bad_gateway(self.kserve_ingress_gateway)):
            return "kserveIngressGateway", wrong
        if not self.ingress_gateway:
            return "ingressGateway", "is required, such as knative-serving/knative-ingress-gateway"
        if self.path_template.count("{{") != self.path_template.count("}}"):
            return "pathTemplate", "has a {{ without its }}"
        if self.path_template and not self.ingress_domain:
            return "ingressDomain", "is required when pathTemplate is given"
        return None

    @property
    def has_path_urls(self) -> bool:
        """Returns whether services in Standard mode are reached at a path, which is cut off on the way to them."""
        return self.path_based_url and self.enable_gateway_api and bool(self.path_template)

    def complete(self) -> Self:
        return msgspec.structs.replace(
            self,
            knative_local_gateway_service=self.knative_local_gateway_service or self.local_gateway_service,
            domain_template=self.domain_template or "{{ .Name }}-{{ .Namespace }}.{{ .IngressDomain }}",
            ingress_domain=self.ingress_domain or "example.com",
            url_scheme=self.url_scheme or "http",
            model_based_routing_header_name=self.model_based_routing_header_name or "X-Gateway-Model-Name",
            model_based_routing_mode=self.model_based_routing_mode or "enabled",
        )


class LoggerConfig(Sidecar):
    default_url: str = ""
    ca_bundle: str = ""
    ca_cert_file: str = ""
    tls_skip_verify: bool = False
    storage: LoggerStorageSpec | None = None
    marshaller_url: str = ""
    batch_size: int = 0
    batch_interval: str = ""


class BatcherConfig(Sidecar):
    memory_request: str = "1Gi"
    cpu_request: str = "1"
    max_batch_size: str = ""
    max_latency: str = ""


class AgentConfig(Sidecar):
    pass


class RouterConfig(Sidecar):
    image: str = "kserve/router:latest"
    headers: Mapping[str, tuple[str, ...]] = {}
    image_pull_policy: str = ""
    image_pull_secrets: tuple[str, ...] = ()


class RolloutConfig(Section):
    max_surge: str = ""
    max_unavailable: str = ""


class RolloutStrategyConfig(Section):
    default_rollout: RolloutConfig | None = None


class DisruptionBudgetConfig(Section):
    max_unavailable: str = ""

    def problem(self) -> tuple[str, str] | None:
        if self.max_unavailable and not allows_disruption(self.max_unavailable):
            return "maxUnavailable", f"{ALLOWS_DISRUPTION}, got {self.max_unavailable!r}"
        return None


class DeployConfig(Section):
    default_deployment_mode: str = ""
    deployment_rollout_strategy: RolloutStrategyConfig | None = None
    pod_disruption_budget: DisruptionBudgetConfig = DisruptionBudgetConfig()  # ours

    @property
    def default_mode(self) -> DeploymentMode:
        """Returns the mode of services that choose none. Without a `deploy` section that is Knative."""
        return DeploymentMode(self.default_deployment_mode or DeploymentMode.KNATIVE)

    def problem(self) -> tuple[str, str] | None:
        modes = ", ".join(DeploymentMode)
        if not self.default_deployment_mode:
            return "defaultDeploymentMode", f"is required: one of {modes}"
        if current_name(self.default_deployment_mode) not in list(DeploymentMode):
            return "defaultDeploymentMode", f"must be one of {modes}, got {self.default_deployment_mode!r}"
        return None

    def complete(self) -> Self:
        """Returns the section with today's name of the mode."""
        return msgspec.structs.replace(self, default_deployment_mode=current_name(self.default_deployment_mode))


class MetricsAggregatorConfig(Section):
    enable_metric_aggregation: str = ""
    enable_prometheus_scraping: str = ""


class LocalModelConfig(Section):
    enabled: bool = False
    job_namespace: str = ""
    default_job_image: str = ""
    fs_group: int | None = None
    job_ttl_seconds_after_finished: int | None = msgspec.field(default=None, name="jobTTLSecondsAfterFinished")
    reconcilation_frequency_in_secs: int | None = None
    disable_volume_management: bool = False


class SecurityConfig(Section):
    auto_mount_service_account_token: bool = False


class InferenceServiceConfig(Section):
    """The two lists always hold what may never reach a Knative revision, then what the ConfigMap adds."""

    service_annotation_disallowed_list: tuple[str, ...] = ()
    service_label_disallowed_list: tuple[str, ...] = ()
    resource: Resources = Resources()

    def complete(self) -> Self:
        return msgspec.structs.replace(
            self,
            service_annotation_disallowed_list=(
                *DISALLOWED_SERVICE_ANNOTATIONS,
                *self.service_annotation_disallowed_list,
            ),
            service_label_disallowed_list=(*DISALLOWED_SERVICE_LABELS, *self.service_label_disallowed_list),
        )


class ServiceConfig(Section):
    service_cluster_ip_none: bool = msgspec.field(default=False, name="serviceClusterIPNone")


class MultiNodeConfig(Section):
    custom_gpu_resource_type_list: tuple[str, ...] = msgspec.field(default=(), name="customGPUResourceTypeList")

    @property
    def gpu_resource_types(self) -> tuple[str, ...]:
        """Returns the names of resources that count as GPUs."""
        return (*self.custom_gpu_resource_type_list, *KNOWN_GPUS)


class OpenTelemetryCollectorConfig(Section):
    scrape_interval: str = ""
    metric_receiver_endpoint: str = ""
    metric_scaler_endpoint: str = ""
    resource: Resources = Resources()


class ServiceAddress(NamedTuple):
    """A port of a Service, wherever it is."""

    name: str
    namespace: str
    port: int

    @classmethod
    def parse(cls, text: str) -> ServiceAddress | None:
        """Reads `name.namespace:port`."""
        host, _, port = text.partition(":")
        name, _, namespace = host.partition(".")
        if not (_is_label(name) and _is_label(namespace) and port.isascii() and port.isdigit()):
            return None
        return cls(name, namespace, int(port)) if 0 < int(port) < 2**16 else None


class AutoscalerConfig(Section):
    scale_up_stabilization_window_seconds: str = ""
    scale_down_stabilization_window_seconds: str = ""
    http_interceptor: str = "keda-add-ons-http-interceptor-proxy.keda:8080"  # ours, as is the next
    http_scaler: str = "keda-add-ons-http-external-scaler.keda:9090"

    @property
    def interceptor(self) -> ServiceAddress:
        found = ServiceAddress.parse(self.http_interceptor)
        assert found is not None  # by `problem`
        return found

    def problem(self) -> tuple[str, str] | None:
        for key, text in (("httpInterceptor", self.http_interceptor), ("httpScaler", self.http_scaler)):
            if ServiceAddress.parse(text) is None:
                return key, f"must be <service>.<namespace>:<port>, got {text!r}"
        return None


class SchedulerConfig(Section):
    """Of the schedulers of LLMInferenceServices. The first annotation is written, all of them are read."""

    expiration_annotations: _SomeNames = ("certificates.kserve.io/expiration",)


class PrometheusConfig(Section):
    url: str = ""
    tls_insecure_skip_verify: bool = False
    auth_modes: str = ""
    trigger_auth_name: str = ""
    trigger_auth_kind: str = ""


class VariantAutoscalerConfig(Section):
    prometheus: PrometheusConfig = PrometheusConfig()


def _bad_quantity(section: Section, *attributes: str, required: bool = False) -> tuple[str, str] | None:
    keys = {info.name: info.encode_name for info in msgspec.structs.fields(section)}
    for attribute in attributes:
        text: Any = getattr(section, attribute)
        try:
            if text or required:
                Quantity.parse(text)
        except QuantityError:
            return keys[attribute], f"must be a quantity such as 100m or 1Gi, got {repr(text) if text else 'none'}"
    return None


def _bad_gateway(gateway: str) -> str | None:
    example = "must be <namespace>/<name> of a Gateway, such as kserve/kserve-ingress-gateway"
    parts = gateway.split("/")
    return None if len(parts) == 2 and all(map(_is_label, parts)) else f"{example}, got {gateway!r}"


def _is_label(text: str) -> bool:
    return len(text) <= 63 and DNS_LABEL.fullmatch(text) is not None


ALLOWS_DISRUPTION = "must be a number of pods from 1 or a percentage from 1% to 100%"


def allows_disruption(text: str) -> bool:
    """Returns whether at least one of any number of pods may go: of a share the cluster takes the next whole number."""
    number, percent = text.removesuffix("%"), text.endswith("%")
    return number.isascii() and number.isdigit() and 1 <= int(number[:11]) <= (100 if percent else 2**31 - 1)

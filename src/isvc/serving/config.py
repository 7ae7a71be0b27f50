"""The configuration of the whole control plane: the `inferenceservice-config` ConfigMap, parsed once into one value.

A ConfigMap that cannot be understood raises one `ConfigError` that names section and key. `Kept` holds on to the last
configuration that could be, so that a typo in the ConfigMap stops nothing that runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from isvc.serving.config_sections import (
    AgentConfig,
    AutoscalerConfig,
    BatcherConfig,
    CredentialsConfig,
    DeployConfig,
    ExplainerConfig,
    ExplainersConfig,
    GCSConfig,
    InferenceServiceConfig,
    IngressConfig,
    LocalModelConfig,
    LoggerConfig,
    MetricsAggregatorConfig,
    MultiNodeConfig,
    OpenTelemetryCollectorConfig,
    Resources,
    RouterConfig,
    S3Config,
    SchedulerConfig,
    Section,
    SecurityConfig,
    ServiceConfig,
    Sidecar,
    StorageInitializerConfig,
    VariantAutoscalerConfig,
)

CONFIG_MAP: Final = "inferenceservice-config"

__all__ = [
    "CONFIG_MAP",
    "AgentConfig",
    "AutoscalerConfig",
    "BatcherConfig",
    "Config",
    "ConfigError",
    "CredentialsConfig",
    "DeployConfig",
    "ExplainerConfig",
    "ExplainersConfig",
    "GCSConfig",
    "InferenceServiceConfig",
    "IngressConfig",
    "Kept",
    "LocalModelConfig",
    "LoggerConfig",
    "MetricsAggregatorConfig",
    "MultiNodeConfig",
    "OpenTelemetryCollectorConfig",
    "Resources",
    "RouterConfig",
    "S3Config",
    "SchedulerConfig",
    "SecurityConfig",
    "ServiceConfig",
    "Sidecar",
    "StorageInitializerConfig",
    "VariantAutoscalerConfig",
]

S = TypeVar("S", bound=Section)


class ConfigError(ValueError):
    """The ConfigMap says something that cannot be: `section` and `key` say where."""

    def __init__(self, section: str, key: str, problem: str) -> None:
        where = f"{section}.{key}" if key else section
        super().__init__(f"{CONFIG_MAP}: {where} {problem}")
        self.section = section
        self.key = key


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """Every section, with defaults filled in."""

    explainers: ExplainersConfig = ExplainersConfig()
    storage_initializer: StorageInitializerConfig = StorageInitializerConfig()
    credentials: CredentialsConfig = CredentialsConfig()
    ingress: IngressConfig = IngressConfig().completed()
    logger: LoggerConfig = LoggerConfig()
    batcher: BatcherConfig = BatcherConfig()
    agent: AgentConfig = AgentConfig()
    router: RouterConfig = RouterConfig()
    deploy: DeployConfig = DeployConfig()
    metrics_aggregator: MetricsAggregatorConfig = MetricsAggregatorConfig()
    local_model: LocalModelConfig = LocalModelConfig()
    security: SecurityConfig = SecurityConfig()
    inference_service: InferenceServiceConfig = InferenceServiceConfig().completed()
    service: ServiceConfig = ServiceConfig()
    multi_node: MultiNodeConfig = MultiNodeConfig()
    opentelemetry_collector: OpenTelemetryCollectorConfig = OpenTelemetryCollectorConfig()
    autoscaler: AutoscalerConfig = AutoscalerConfig()
    scheduler: SchedulerConfig = SchedulerConfig()
    variant_autoscaler: VariantAutoscalerConfig | None = None

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> Config:
        """The configuration of a ConfigMap's `data`. Sections that are not there have their defaults."""
        inference_service = _section(data, "inferenceService", InferenceServiceConfig)
        return cls(
            explainers=_section(data, "explainers", ExplainersConfig),
            storage_initializer=_section(data, "storageInitializer", StorageInitializerConfig),
            credentials=_section(data, "credentials", CredentialsConfig),
            ingress=_section(data, "ingress", IngressConfig).completed(),
            logger=_section(data, "logger", LoggerConfig),
            batcher=_section(data, "batcher", BatcherConfig),
            agent=_section(data, "agent", AgentConfig),
            router=_section(data, "router", RouterConfig),
            deploy=_section(data, "deploy", DeployConfig).completed(),
            metrics_aggregator=_section(data, "metricsAggregator", MetricsAggregatorConfig),
            local_model=_section(data, "localModel", LocalModelConfig),
            security=_section(data, "security", SecurityConfig),
            inference_service=inference_service.completed(),
            service=_section(data, "service", ServiceConfig),
            multi_node=_section(data, "multiNode", MultiNodeConfig),
            opentelemetry_collector=_section(data, "opentelemetryCollector", OpenTelemetryCollectorConfig),
            autoscaler=_section(data, "autoscaler", AutoscalerConfig),
            scheduler=_section(data, "scheduler", SchedulerConfig),
            variant_autoscaler=(
                _section(data, VARIANT_AUTOSCALER, VariantAutoscalerConfig) if VARIANT_AUTOSCALER in data else None
            ),
        )


VARIANT_AUTOSCALER: Final = "autoscaling-wva-controller-config"
_PATH = re.compile(r" - at `(?:key in )?\$\.?(.*)`$")


def _section(data: Mapping[str, str], name: str, kind: type[S]) -> S:
    if name not in data:
        return kind()
    try:
        section = msgspec.json.decode(data[name], type=kind)
    except msgspec.ValidationError as error:
        where = _PATH.search(str(error))
        problem = _PATH.sub("", str(error)).replace("Expected", "must be").replace("`", "")
        raise ConfigError(name, where[1] if where else "", problem) from None
    except msgspec.DecodeError as error:
        raise ConfigError(name, "", f"is not JSON: {error}") from None
    for path, part in _parts(section, ""):
        if found := part.problem():
            raise ConfigError(name, path + found[0], found[1])
    return section


def _parts(section: Section, path: str) -> list[tuple[str, Section]]:
    parts = [(path, section)]
    for info in msgspec.structs.fields(section):
        value = getattr(section, info.name)
        if isinstance(value, Section):
            parts += _parts(value, f"{path}{info.encode_name}.")
    return parts


class Kept:
    """The configuration in force: the newest that could be understood."""

    def __init__(self, config: Config | None = None) -> None:
        self.config = config
        self.error: ConfigError | None = None

    def offer(self, data: Mapping[str, str]) -> Config | None:
        """Takes a ConfigMap's `data`; gives the configuration in force, which is the old one if this one is bad."""
        try:
            self.config, self.error = Config.parse(data), None
        except ConfigError as error:
            self.error = error
        return self.config

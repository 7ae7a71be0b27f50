"""The whole ConfigMap as one value: parsed section by section, with defaults filled in.

A ConfigMap that cannot be parsed raises one `ConfigError` that names the section and the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from isvc.api.codec import locate
from isvc.serving.config.sections import (
    AgentConfig,
    AutoscalerConfig,
    BatcherConfig,
    CredentialsConfig,
    DeployConfig,
    ExplainersConfig,
    InferenceServiceConfig,
    IngressConfig,
    LocalModelConfig,
    LoggerConfig,
    MetricsAggregatorConfig,
    MultiNodeConfig,
    OpenTelemetryCollectorConfig,
    RouterConfig,
    SchedulerConfig,
    Section,
    SecurityConfig,
    ServiceConfig,
    StorageInitializerConfig,
    VariantAutoscalerConfig,
)

CONFIG_MAP: Final = "inferenceservice-config"

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
    ingress: IngressConfig = IngressConfig().complete()
    logger: LoggerConfig = LoggerConfig()
    batcher: BatcherConfig = BatcherConfig()
    agent: AgentConfig = AgentConfig()
    router: RouterConfig = RouterConfig()
    deploy: DeployConfig = DeployConfig()
    metrics_aggregator: MetricsAggregatorConfig = MetricsAggregatorConfig()
    local_model: LocalModelConfig = LocalModelConfig()
    security: SecurityConfig = SecurityConfig()
    inference_service: InferenceServiceConfig = InferenceServiceConfig().complete()
    service: ServiceConfig = ServiceConfig()
    multi_node: MultiNodeConfig = MultiNodeConfig()
    opentelemetry_collector: OpenTelemetryCollectorConfig = OpenTelemetryCollectorConfig()
    autoscaler: AutoscalerConfig = AutoscalerConfig()
    scheduler: SchedulerConfig = SchedulerConfig()
    variant_autoscaler: VariantAutoscalerConfig | None = None

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> Config:
        """Returns the configuration of a ConfigMap's `data`. Sections that are not there have their defaults."""
        inference_service = _section(data, "inferenceService", InferenceServiceConfig)
        return cls(
            explainers=_section(data, "explainers", ExplainersConfig),
            storage_initializer=_section(data, "storageInitializer", StorageInitializerConfig),
            credentials=_section(data, "credentials", CredentialsConfig),
            ingress=_section(data, "ingress", IngressConfig).complete(),
            logger=_section(data, "logger", LoggerConfig),
            batcher=_section(data, "batcher", BatcherConfig),
            agent=_section(data, "agent", AgentConfig),
            router=_section(data, "router", RouterConfig),
            deploy=_section(data, "deploy", DeployConfig).complete(),
            metrics_aggregator=_section(data, "metricsAggregator", MetricsAggregatorConfig),
            local_model=_section(data, "localModel", LocalModelConfig),
            security=_section(data, "security", SecurityConfig),
            inference_service=inference_service.complete(),
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


def _section(data: Mapping[str, str], name: str, kind: type[S]) -> S:
    if name not in data:
        return kind()
    try:
        section = msgspec.json.decode(data[name], type=kind)
    except msgspec.ValidationError as error:
        key, problem = locate(error)
        raise ConfigError(name, key, problem.replace("Expected", "must be").replace("`", "")) from None
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

"""The configuration of the whole control plane: the `inferenceservice-config` ConfigMap.

`sections`   one struct for each key of the ConfigMap, with its defaults
`configmap`  the ConfigMap parsed into one `Config`
`current`    the configuration in force: the newest one that could be parsed
"""

from isvc.serving.config.configmap import CONFIG_MAP, Config, ConfigError
from isvc.serving.config.sections import (
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
    SecurityConfig,
    ServiceConfig,
    Sidecar,
    StorageInitializerConfig,
    VariantAutoscalerConfig,
)

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

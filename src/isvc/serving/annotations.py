"""How a controller talks to the pod webhook: the annotations and labels it leaves on a pod template.

The webhook sees one pod and nothing of the plan behind it, so the controller writes what it decided onto the template.
These names are also what users and other tools find on running pods.
"""

from __future__ import annotations

from typing import Final

from isvc.api.annotations import INTERNAL, SERVICE_LABEL
from isvc.api.resources import GROUP

# Which InferenceService a pod belongs to, and as what.
SERVICE: Final = SERVICE_LABEL
COMPONENT: Final = "component"
ENDPOINT: Final = "endpoint"

# Where the model comes from.
SOURCE_URI: Final = f"{INTERNAL}/storage-initializer-sourceuri"
STORAGE_SPEC: Final = f"{INTERNAL}/storage-spec"
STORAGE_SPEC_PARAM: Final = f"{INTERNAL}/storage-spec-param"
STORAGE_SPEC_KEY: Final = f"{INTERNAL}/storage-spec-key"
STORAGE_CONTAINER_NAME: Final = f"{INTERNAL}/storage-container-name"
STORAGE_READONLY: Final = "storage.kserve.io/readonly"
INITIALIZER_UID: Final = f"{GROUP}/storage-initializer-uid"

# A model that is decrypted while it is downloaded.
CONFIDENTIAL_ENABLED: Final = f"{INTERNAL}/confidential-enabled"
CONFIDENTIAL_RESOURCE_ID: Final = f"{INTERNAL}/confidential-resource-id"

# What the agent does beside the model server.
LOGGER: Final = f"{INTERNAL}/logger"
LOGGER_SINK_URL: Final = f"{INTERNAL}/logger-sink-url"
LOGGER_MODE: Final = f"{INTERNAL}/logger-mode"
LOGGER_METADATA_HEADERS: Final = f"{INTERNAL}/logger-metadata-headers"
LOGGER_METADATA_ANNOTATIONS: Final = f"{INTERNAL}/logger-metadata-annotations"
BATCHER: Final = f"{INTERNAL}/batcher"
BATCHER_MAX_BATCH_SIZE: Final = f"{INTERNAL}/batcher-max-batchsize"
BATCHER_MAX_LATENCY: Final = f"{INTERNAL}/batcher-max-latency"
PULLER: Final = f"{INTERNAL}/agent"
PULLER_CONFIG_VOLUME: Final = f"{INTERNAL}/configVolumeName"
PULLER_CONFIG_PATH: Final = f"{INTERNAL}/configMountPath"
PULLER_MODEL_DIR: Final = f"{INTERNAL}/modelDir"

# Where ModelMesh's predictor answers, and in which protocol.
PREDICTOR_HOST: Final = f"{INTERNAL}/predictor-host"
PREDICTOR_PROTOCOL: Final = f"{INTERNAL}/predictor-protocol"

# Metrics and hardware.
METRIC_AGGREGATION: Final = f"{GROUP}/enable-metric-aggregation"
PROMETHEUS_SCRAPING: Final = f"{GROUP}/enable-prometheus-scraping"
MODEL_METRICS_PORT: Final = "prometheus.kserve.io/port"
MODEL_METRICS_PATH: Final = "prometheus.kserve.io/path"
POD_METRICS_PORT: Final = "prometheus.io/port"
POD_METRICS_PATH: Final = "prometheus.io/path"
GKE_ACCELERATOR: Final = f"{GROUP}/gke-accelerator"

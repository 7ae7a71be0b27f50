"""The conditions of an LLMInferenceService. Ready waits for the three that sum the others up."""

from __future__ import annotations

from typing import Final

from isvc.kube.conditions import ConditionSet
from isvc.serving.storage.image_volumes import CONDITION

READY: Final = "Ready"
PRESETS_COMBINED: Final = "PresetsCombined"
WORKLOADS_READY: Final = "WorkloadsReady"
ROUTER_READY: Final = "RouterReady"

MAIN_WORKLOAD_READY: Final = "MainWorkloadReady"
WORKER_WORKLOAD_READY: Final = "WorkerWorkloadReady"
PREFILL_WORKLOAD_READY: Final = "PrefillWorkloadReady"
PREFILL_WORKER_WORKLOAD_READY: Final = "PrefillWorkerWorkloadReady"
SCALING_READY: Final = "ScalingReady"
PREFILL_SCALING_READY: Final = "PrefillScalingReady"

GATEWAYS_READY: Final = "GatewaysReady"
HTTP_ROUTES_READY: Final = "HTTPRoutesReady"
INFERENCE_POOL_READY: Final = "InferencePoolReady"
SCHEDULER_WORKLOAD_READY: Final = "SchedulerWorkloadReady"
TOKENIZER_READY: Final = "TokenizerReady"

GROUP_READY: Final = "GroupReady"
GROUP_DEGRADED: Final = "GroupDegraded"
IMAGE_VOLUMES_COMPATIBLE: Final = CONDITION

WORKLOAD_CONDITIONS: Final = (
    MAIN_WORKLOAD_READY,
    WORKER_WORKLOAD_READY,
    PREFILL_WORKLOAD_READY,
    PREFILL_WORKER_WORKLOAD_READY,
    SCALING_READY,
    PREFILL_SCALING_READY,
)
"""Summed up by WorkloadsReady; the first that is False speaks for all."""
ROUTER_CONDITIONS: Final = (
    GATEWAYS_READY,
    HTTP_ROUTES_READY,
    INFERENCE_POOL_READY,
    SCHEDULER_WORKLOAD_READY,
    TOKENIZER_READY,
)
"""Summed up by RouterReady; the first that is False speaks for all."""

CONDITIONS: Final = ConditionSet((PRESETS_COMBINED, WORKLOADS_READY, ROUTER_READY))

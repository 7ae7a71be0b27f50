"""Labels of what is made for an LLMInferenceService: selectors, Services and pools find pods by them."""

from __future__ import annotations

from typing import Final

from isvc.api.annotations import NAME_LABEL

NAME: Final = NAME_LABEL
PART_OF: Final = "app.kubernetes.io/part-of"
COMPONENT: Final = "app.kubernetes.io/component"
KSERVE_COMPONENT: Final = "kserve.io/component"
ROLE: Final = "llm-d.ai/role"
SERVICE: Final = "serving.kserve.io/llminferenceservice"
"""The service whose pods these are, where the user gave them the name of another."""
ROUTING_GROUP: Final = "serving.kserve.io/routing-group"

LLM: Final = "llminferenceservice"
OURS: Final = f"{PART_OF}={LLM}"
"""Selects what is made for any service."""
ROUTER: Final = f"{LLM}-router"
SCHEDULER: Final = f"{LLM}-router-scheduler"
TOKENIZER: Final = "tokenizer"
WORKLOAD: Final = f"{LLM}-workload"
WORKLOAD_PREFILL: Final = f"{LLM}-workload-prefill"
WORKLOAD_LEADER: Final = f"{LLM}-workload-leader"
WORKLOAD_LEADER_PREFILL: Final = f"{LLM}-workload-leader-prefill"
WORKLOAD_WORKER: Final = f"{LLM}-workload-worker"
WORKLOAD_WORKER_PREFILL: Final = f"{LLM}-workload-worker-prefill"


def labels(service: str, component: str = "") -> dict[str, str]:
    """Returns who an object belongs to and, where that matters, as what."""
    of_service = {NAME: service, PART_OF: LLM}
    return {COMPONENT: component, **of_service} if component else of_service


def workload_selector(service: str) -> dict[str, str]:
    """Selects the pods that answer requests: not the workers behind a leader."""
    return {**labels(service), KSERVE_COMPONENT: "workload"}

"""Which pods belong to a service."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.api.resources import INFERENCE_GRAPHS, INFERENCE_SERVICES, LLM_INFERENCE_SERVICES
from isvc.controllers.inferencegraph.plan import GRAPH_LABEL
from isvc.controllers.inferenceservice.status.model import newest_first
from isvc.kube.objects import Object, labels_of, name_of
from isvc.serving.annotations import SERVICE
from isvc.serving.llm.labels import NAME

_LABELS: Final = {
    INFERENCE_SERVICES.kind: SERVICE,
    LLM_INFERENCE_SERVICES.kind: NAME,
    INFERENCE_GRAPHS.kind: GRAPH_LABEL,
}
#: Labels whose value is the name of the service that a pod belongs to.
SERVICE_LABELS: Final = frozenset(_LABELS.values())


def pods_of(service: Object, pods: Iterable[Object]) -> list[Object]:
    """The pods of a service, the newest first."""
    label = _LABELS.get(str(service.get("kind")), "")
    return newest_first([pod for pod in pods if labels_of(pod).get(label) == name_of(service)])

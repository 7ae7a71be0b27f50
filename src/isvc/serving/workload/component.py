"""What there is to deploy of one component, before anyone decides how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isvc.api.annotations import AUTOSCALER_CLASS
from isvc.kube.objects import Object


@dataclass(frozen=True, slots=True)
class Worker:
    """The workers beside the head of a multi-node predictor."""

    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    pod: Object
    replicas: int
    generation: int


@dataclass(frozen=True, slots=True)
class Component:
    """A component's pod and metadata. `scale` is its part of the spec: minReplicas, autoScaling, logger, …"""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    pod: Object
    scale: Mapping[str, Any] = field(default_factory=dict)
    worker: Worker | None = None

    @property
    def autoscaler(self) -> str:
        return self.annotations.get(AUTOSCALER_CLASS, "hpa")

    def metadata(self, labels: Mapping[str, str] | None = None, name: str = "") -> Object:
        """Fresh metadata for a child, with the component's labels unless others are given."""
        metadata: Object = {
            "name": name or self.name,
            "namespace": self.namespace,
            "labels": dict(self.labels if labels is None else labels),
            "annotations": dict(self.annotations),
        }
        return {key: value for key, value in metadata.items() if value}

"""What there is to deploy of one component, before anyone decides how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from isvc.api.annotations import AUTOSCALER_CLASS
from isvc.api.inferenceservice.components import ComponentExtensionSpec
from isvc.kube.objects import Object
from isvc.serving.refused import Refused


class WorkloadRefused(Refused):
    """A component cannot run or be scaled in the way that it asks for."""


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
    """A component's pod and metadata. `spec` says how it is scaled, rolled out, logged and batched."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    pod: Object
    spec: ComponentExtensionSpec = field(default_factory=ComponentExtensionSpec)
    worker: Worker | None = None

    @property
    def autoscaler(self) -> str:
        return self.annotations.get(AUTOSCALER_CLASS, "hpa")

    def metadata(self, labels: Mapping[str, str] | None = None, name: str = "") -> Object:
        """Makes metadata for a child, with the component's labels unless others are given."""
        metadata: Object = {
            "name": name or self.name,
            "namespace": self.namespace,
            "labels": dict(self.labels if labels is None else labels),
            "annotations": dict(self.annotations),
        }
        return {key: value for key, value in metadata.items() if value}

"""Everything that a decision about one InferenceGraph is based on, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isvc.api.inferencegraph import InferenceGraphSpec
from isvc.api.inferenceservice import InferenceService
from isvc.api.modes import DeploymentMode, mode_of
from isvc.api.servingruntime import ServingRuntimeSpec
from isvc.kube.objects import Object, annotations_of, dig, name_of
from isvc.serving import hosts
from isvc.serving.config import Config


@dataclass(frozen=True, slots=True)
class Observed:
    """A graph (as stored, and its spec typed), the services and runtimes that its steps lead to, and more."""

    graph: Object
    spec: InferenceGraphSpec
    config: Config
    services: Mapping[str, InferenceService]
    runtimes: Mapping[str, ServingRuntimeSpec]
    has_knative: bool
    zero_initial_scale: bool
    now: str

    @property
    def mode(self) -> DeploymentMode:
        recorded = dig(self.graph, "status", "deploymentMode") or ""
        return mode_of(annotations_of(self.graph), recorded, self.config.deploy.default_mode)

    @property
    def url(self) -> str:
        """Where a graph that runs as a Deployment is reached."""
        return f"http://{hosts.domain_name(name_of(self.graph), self.graph, self.config.ingress)}"

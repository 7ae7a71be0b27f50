"""Everything that a decision about one InferenceService is based on, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from isvc.api import InferenceService
from isvc.api.annotations import DISABLE_AUTO_UPDATE, is_stopped
from isvc.api.modes import DeploymentMode, mode_of
from isvc.engine import kind as engine
from isvc.kube.conditions import is_condition_true
from isvc.kube.objects import Object, annotations_of, dig, without
from isvc.kube.resource import Resource
from isvc.serving.config import Config
from isvc.serving.credentials import Lookup
from isvc.serving.environment import Environment
from isvc.serving.knative_settings import allows_zero_initial_scale, knative_domains
from isvc.serving.runtimes import Runtimes

Live: TypeAlias = Mapping[tuple[Resource, str], Object]
"""Children by kind and name, as they are."""


@dataclass(frozen=True)
class Observed(engine.Observed):
    """`raw` is the object and `service` the same, typed; `live` and `pods` are what runs for it.

    `served` are the optional kinds that this cluster has. `server_version` is (major, minor), known only where it
    matters. `host_conflict` names an older service or graph that reports the same host. `away` are those of KEDA that
    do not run.
    """

    service: InferenceService
    config: Config
    runtimes: Runtimes = field(default_factory=lambda: Runtimes((), ()))
    storage_containers: Sequence[Object] = ()
    live: Live = field(default_factory=dict)
    pods: Sequence[Object] = ()
    served: frozenset[Resource] = frozenset()
    ca_bundle: Object | None = None
    server_version: tuple[str, str] | None = None
    environment: Environment = field(default_factory=Environment)
    host_conflict: str | None = None
    away: frozenset[str] = frozenset()

    @property
    def system_namespace(self) -> str:
        return self.environment.system_namespace

    @cached_property
    def lookup(self) -> Lookup:
        return Lookup(self.namespace, self.answers)

    def allows_zero_initial_scale(self) -> bool:
        return allows_zero_initial_scale(self.answers, self.environment.knative_namespace)

    @property
    def knative_domains(self) -> tuple[str, ...]:
        return knative_domains(self.answers, self.environment.knative_namespace)

    @cached_property
    def annotations(self) -> dict[str, str]:
        """The service's annotations, without those that must not reach its children."""
        return without(annotations_of(self.raw), self.config.inference_service.service_annotation_disallowed_list)

    @cached_property
    def mode(self) -> DeploymentMode:
        recorded = str(self.status.get("deploymentMode") or "")
        return mode_of(self.annotations, recorded, self.config.deploy.default_mode)

    @property
    def predictor_url(self) -> str:
        """Where the predictor was last reported to answer."""
        return str(dig(self.status, "components", "predictor", "url") or "")

    @cached_property
    def stopped(self) -> bool:
        return is_stopped(self.raw)

    @property
    def is_foreign(self) -> bool:
        """Returns whether ModelMesh's own controller deploys all of the service."""
        return self.mode is DeploymentMode.MODEL_MESH and self.service.spec.transformer is None

    @property
    def awaits_predictor(self) -> bool:
        """Returns whether the predictor that ModelMesh deploys has no address yet that a transformer could call."""
        return self.mode is DeploymentMode.MODEL_MESH and not self.predictor_url

    @property
    def is_pinned(self) -> bool:
        """A ready service whose owner asked for no automatic updates."""
        return self.annotations.get(DISABLE_AUTO_UPDATE) == "true" and is_condition_true(self.raw, "Ready")

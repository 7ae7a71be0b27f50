"""Everything that a decision about one InferenceService is based on, as one frozen value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from isvc.api import InferenceService
from isvc.api.annotations import is_stopped
from isvc.api.modes import DeploymentMode, mode_of
from isvc.kube.objects import Object, annotations_of, dig, name_of, namespace_of, without
from isvc.kube.resource import Resource
from isvc.serving.config import Config
from isvc.serving.credentials import Lookup
from isvc.serving.environment import SYSTEM_NAMESPACE
from isvc.serving.runtimes import Runtimes

Live: TypeAlias = Mapping[tuple[Resource, str], Object]
"""Children by kind and name, as they are."""


@dataclass(frozen=True)
class Observed:
    """`raw` is the object and `service` the same, typed; `live` and `pods` are what runs for it.

    `served` are the optional kinds that this cluster has. What planning reads of service accounts and secrets is in
    `lookup`. `server_version` is (major, minor), known only where it matters.
    """

    raw: Object
    service: InferenceService
    config: Config
    runtimes: Runtimes = field(default_factory=lambda: Runtimes((), ()))
    storage_containers: Sequence[Object] = ()
    live: Live = field(default_factory=dict)
    pods: Sequence[Object] = ()
    served: frozenset[Resource] = frozenset()
    ca_bundle: Object | None = None
    lookup: Lookup = field(default_factory=lambda: Lookup(""))
    system_namespace: str = SYSTEM_NAMESPACE
    server_version: tuple[str, str] | None = None
    zero_initial_scale: bool = False
    knative_domains: Sequence[str] = ()
    now: str = ""

    @cached_property
    def name(self) -> str:
        return name_of(self.raw)

    @cached_property
    def namespace(self) -> str:
        return namespace_of(self.raw)

    @property
    def generation(self) -> int:
        return int(dig(self.raw, "metadata", "generation") or 0)

    @property
    def status(self) -> Object:
        """The status as it was last written."""
        status: Object = self.raw.get("status") or {}
        return status

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

"""Everything that a decision about one service is based on, read from memory and frozen into one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from isvc.api import InferenceService
from isvc.api.annotations import is_stopped
from isvc.api.modes import DeploymentMode, mode_of
from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    INFERENCE_SERVICES,
    SERVING_RUNTIMES,
)
from isvc.kube.objects import (
    Key,
    Object,
    annotations_of,
    dig,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
    without,
)
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, INGRESSES, PODS, Resource
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.serving.credentials import Lookup
from isvc.serving.runtimes import Runtime, Runtimes
from isvc.serving.thirdparty import (
    HTTP_ROUTES,
    KNATIVE_SERVICES,
    OPENTELEMETRY_COLLECTORS,
    SCALED_OBJECTS,
    VIRTUAL_SERVICES,
)
from isvc.toolkit.cache import OWNER, Reader

SERVICE_INDEX: Final = "service"
OPTIONAL: Final = (HTTP_ROUTES, KNATIVE_SERVICES, VIRTUAL_SERVICES, SCALED_OBJECTS, OPENTELEMETRY_COLLECTORS)


@dataclass(frozen=True)
class Observed:
    raw: Object
    service: InferenceService
    config: Config
    runtimes: Runtimes = field(default_factory=lambda: Runtimes((), ()))
    storage_containers: Sequence[Object] = ()
    live: Mapping[tuple[Resource, str], Object] = field(default_factory=dict)
    pods: Sequence[Object] = ()
    served: frozenset[Resource] = frozenset()
    ca_bundle: Object | None = None
    lookup: Lookup = field(default_factory=lambda: Lookup(""))
    system_namespace: str = "kserve"
    kubernetes: tuple[str, str] | None = None  # its version, where that matters
    zero_initial_scale: bool = False
    knative_domains: Sequence[str] = ()
    now: str = ""

    @property
    def name(self) -> str:
        return name_of(self.raw)

    @property
    def namespace(self) -> str:
        return namespace_of(self.raw)

    @property
    def generation(self) -> int:
        return int(dig(self.raw, "metadata", "generation") or 0)

    @cached_property
    def annotations(self) -> dict[str, str]:
        """The service's annotations, without those that must not reach its children."""
        return without(annotations_of(self.raw), self.config.inference_service.service_annotation_disallowed_list)

    @cached_property
    def mode(self) -> DeploymentMode:
        recorded = str(dig(self.raw, "status", "deploymentMode") or "")
        return mode_of(self.annotations, recorded, self.config.deploy.default_mode)

    @property
    def predictor_url(self) -> str:
        """Where the predictor was last reported to answer."""
        return str(dig(self.raw, "status", "components", "predictor", "url") or "")

    @cached_property
    def stopped(self) -> bool:
        return is_stopped(self.raw)


class Observer:
    """Observes services through a reader; parsed configuration and runtimes are kept while they do not change."""

    def __init__(self, reader: Reader, system_namespace: str) -> None:
        self._reader = reader
        self._system_namespace = system_namespace
        self.configuration = Configuration(reader, system_namespace)
        self._runtimes: dict[tuple[Resource, str, str], tuple[str, Runtime]] = {}

    def observe(self, key: Key, config: Config, now: str, lookup: Lookup | None = None) -> Observed | None:
        reader = self._reader
        raw = reader.get(INFERENCE_SERVICES, key.name, key.namespace)
        if raw is None:
            return None
        served = frozenset(resource for resource in OPTIONAL if reader.serves(resource))
        kinds = (DEPLOYMENTS, INGRESSES, *(served & {HTTP_ROUTES, KNATIVE_SERVICES, VIRTUAL_SERVICES}))
        live = {
            (resource, name_of(child)): child
            for resource in kinds
            for child in reader.by_index(resource, OWNER, uid_of(raw))
        }
        bundle = config.storage_initializer.ca_bundle_config_map_name
        return Observed(
            raw=raw,
            service=InferenceService.decode(raw),
            config=config,
            runtimes=Runtimes(
                self._all(SERVING_RUNTIMES, key.namespace), self._all(CLUSTER_SERVING_RUNTIMES, cluster=True)
            ),
            storage_containers=reader.list(CLUSTER_STORAGE_CONTAINERS),
            live=live,
            pods=reader.by_index(PODS, SERVICE_INDEX, str(key)),
            served=served,
            ca_bundle=reader.get(CONFIG_MAPS, bundle, self._system_namespace) if bundle else None,
            lookup=lookup or Lookup(key.namespace),
            system_namespace=self._system_namespace,
            now=now,
        )

    def _all(self, resource: Resource, namespace: str = "", *, cluster: bool = False) -> list[Runtime]:
        return [self._runtime(resource, obj, cluster=cluster) for obj in self._reader.list(resource, namespace)]

    def _runtime(self, resource: Resource, obj: Object, *, cluster: bool) -> Runtime:
        place = (resource, namespace_of(obj), name_of(obj))
        version = resource_version_of(obj)
        kept = self._runtimes.get(place)
        if kept is None or kept[0] != version or not version:
            kept = self._runtimes[place] = (version, Runtime.of(obj, cluster=cluster))
        return kept[1]

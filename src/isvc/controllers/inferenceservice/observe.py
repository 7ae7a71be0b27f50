"""Reads what a decision about an InferenceService is based on."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from isvc.api import InferenceService
from isvc.api.codec import DecodeError
from isvc.api.completion import read
from isvc.api.defaults.inferenceservice import default_stored
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS, SERVING_RUNTIMES, TRAINED_MODELS
from isvc.api.storagecontainer import ClusterStorageContainer
from isvc.controllers.inferenceservice.builders import CHILDREN, INGRESS_KINDS
from isvc.controllers.inferenceservice.observed import Observed
from isvc.engine.needs import Answers, ServerVersion
from isvc.kube.objects import Key, Object, dig, labels_of, name_of, namespace_of, uid_of
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, ENDPOINT_SLICES, PODS, Resource
from isvc.serving.config.current import Configuration
from isvc.serving.environment import Environment
from isvc.serving.runtimes import Runtime, Runtimes
from isvc.serving.shared_host import host_conflict
from isvc.serving.thirdparty import KNATIVE_SERVICES, OPTIONAL, SCALED_OBJECTS
from isvc.serving.workload.scalers import INDEX, find_away
from isvc.toolkit.cache import OWNER, Reader

log = logging.getLogger(__name__)

T = TypeVar("T")

SERVICE_INDEX: Final = "service"
_OPTIONAL_CHILDREN: Final = CHILDREN & OPTIONAL


class Observer:
    """Observes services through a reader; configuration and runtimes are parsed again only when they change."""

    def __init__(self, reader: Reader, environment: Environment) -> None:
        self._reader, self._environment = reader, environment
        self._configuration = Configuration(reader, environment.system_namespace)
        self._runtimes = _Parsed(reader, SERVING_RUNTIMES, lambda obj: Runtime.of(obj, cluster=False))
        self._cluster_runtimes = _Parsed(reader, CLUSTER_SERVING_RUNTIMES, lambda obj: Runtime.of(obj, cluster=True))
        self._storage_containers = _Parsed(reader, CLUSTER_STORAGE_CONTAINERS, _storage_container)

    def observe(self, raw: Object, answers: Answers, now: str) -> Observed:
        config = self._configuration.required(is_new=not dig(raw, "status", "deploymentMode"))
        reader, key = self._reader, Key.of(raw)
        raw, service = read(InferenceService, default_stored(raw))
        served = frozenset(resource for resource in _OPTIONAL_CHILDREN if reader.serves(resource))
        reported = (DEPLOYMENTS, KNATIVE_SERVICES, SCALED_OBJECTS, *INGRESS_KINDS)
        live = {
            (resource, name_of(child)): child
            for resource in reported
            if resource in served or resource not in OPTIONAL
            for child in reader.by_index(resource, OWNER, uid_of(raw))
        }
        storage = config.storage_initializer
        bundle, system_namespace = storage.ca_bundle_config_map_name, self._environment.system_namespace
        return Observed(
            raw,
            service,
            config,
            runtimes=Runtimes(self._runtimes.all(key.namespace), self._cluster_runtimes.all()),
            storage_containers=[each for each in self._storage_containers.all() if each],
            live=live,
            pods=reader.by_index(PODS, SERVICE_INDEX, str(key)),
            served=served,
            ca_bundle=reader.get(CONFIG_MAPS, bundle, system_namespace) if bundle else None,
            server_version=answers[ServerVersion()] if storage.oci_mode == "native" else None,
            environment=self._environment,
            host_conflict=host_conflict(raw, reader),
            away=find_away(lambda scaler: reader.by_index(ENDPOINT_SLICES, INDEX, scaler)),
            answers=answers,
            now=now,
        )

    def models_of(self, raw: Object) -> list[Object]:
        """Returns the TrainedModels that name the service, which go with it."""
        if not self._reader.serves(TRAINED_MODELS):
            return []
        models = self._reader.list(TRAINED_MODELS, namespace_of(raw))
        return [model for model in models if labels_of(model).get("inferenceservice") == name_of(raw)]


class _Parsed(Generic[T]):
    """Objects of one kind, parsed again when one of them has changed."""

    def __init__(self, reader: Reader, resource: Resource, parse: Callable[[Object], T]) -> None:
        self._reader, self._resource, self._parse = reader, resource, parse
        self._edition = -1
        self._parsed: dict[str, list[T]] = {}  # by namespace

    def all(self, namespace: str = "") -> list[T]:
        edition = self._reader.edition(self._resource)
        if edition != self._edition:
            self._edition, self._parsed = edition, {}
        if namespace not in self._parsed:
            self._parsed[namespace] = [self._parse(obj) for obj in self._reader.list(self._resource, namespace)]
        return self._parsed[namespace]


def _storage_container(obj: Object) -> Object | None:
    """Returns a storage container, or None for one that is malformed: it must not keep others from being used."""
    try:
        return read(ClusterStorageContainer, obj)[0]
    except DecodeError as error:
        log.warning("ClusterStorageContainer %s is malformed: %s", name_of(obj), error)
        return None

"""Reads what a decision about an InferenceService is based on: from the cache, and what that lacks on demand."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, Generic, TypeVar

from isvc.api import InferenceService
from isvc.api.codec import DecodeError
from isvc.api.completion import read
from isvc.api.frameworks import with_model
from isvc.api.modes import DeploymentMode
from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    SERVING_RUNTIMES,
)
from isvc.api.storagecontainer import ClusterStorageContainer
from isvc.controllers.inferenceservice.builders import INGRESS_KINDS
from isvc.controllers.inferenceservice.observed import Observed
from isvc.kube.errors import NotFound
from isvc.kube.objects import Key, Object, name_of, uid_of
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, PODS, Resource
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.serving.credentials import Lookup, with_lookups
from isvc.serving.knative_settings import KnativeSettings
from isvc.serving.runtimes import Runtime, Runtimes
from isvc.serving.thirdparty import KNATIVE_SERVICES, OPTIONAL
from isvc.toolkit.cache import OWNER, Reader
from isvc.toolkit.client import Client

log = logging.getLogger(__name__)

T = TypeVar("T")

SERVICE_INDEX: Final = "service"


class Observer:
    """Observes services through a reader; configuration and runtimes are parsed again only when they change."""

    def __init__(self, reader: Reader, system_namespace: str) -> None:
        self._reader = reader
        self._system_namespace = system_namespace
        self.configuration = Configuration(reader, system_namespace)
        self._runtimes = _Parsed(reader, SERVING_RUNTIMES, lambda obj: Runtime.of(obj, cluster=False))
        self._cluster_runtimes = _Parsed(reader, CLUSTER_SERVING_RUNTIMES, lambda obj: Runtime.of(obj, cluster=True))
        self._storage_containers = _Parsed(reader, CLUSTER_STORAGE_CONTAINERS, _storage_container)

    def observe(self, raw: Object, config: Config, now: str) -> Observed:
        """All that the cache holds about a service; raises `DecodeError` for one that is malformed."""
        reader, key = self._reader, Key.of(raw)
        raw, service = read(InferenceService, with_model(raw))
        served = frozenset(resource for resource in OPTIONAL if reader.serves(resource))
        reported = (DEPLOYMENTS, KNATIVE_SERVICES, *INGRESS_KINDS)
        live = {
            (resource, name_of(child)): child
            for resource in reported
            if resource in served or resource not in OPTIONAL
            for child in reader.by_index(resource, OWNER, uid_of(raw))
        }
        bundle = config.storage_initializer.ca_bundle_config_map_name
        return Observed(
            raw=raw,
            service=service,
            config=config,
            runtimes=Runtimes(self._runtimes.all(key.namespace), self._cluster_runtimes.all()),
            storage_containers=[each for each in self._storage_containers.all() if each],
            live=live,
            pods=reader.by_index(PODS, SERVICE_INDEX, str(key)),
            served=served,
            ca_bundle=reader.get(CONFIG_MAPS, bundle, self._system_namespace) if bundle else None,
            lookup=Lookup(key.namespace),
            system_namespace=self._system_namespace,
            now=now,
        )


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
    """A storage container, or None for one that is malformed: it must not keep others from being used."""
    try:
        return read(ClusterStorageContainer, obj)[0]
    except DecodeError as error:
        log.warning("ClusterStorageContainer %s is malformed: %s", name_of(obj), error)
        return None


class Gatherer:
    """Completes what was observed with what has no informer, each read only where a decision needs it."""

    def __init__(self, client: Client, knative: KnativeSettings) -> None:
        self._client = client
        self._knative = knative

    async def gather(self, observed: Observed, decide: Callable[[Observed], T]) -> tuple[Observed, T]:
        """What was observed, complete, and what was decided on it.

        Service accounts and secrets are read as `decide` asks for them.
        """
        complete = await self._with_version(await self._with_knative_settings(observed))

        async def look_up(resource: Resource, names: tuple[str, ...]) -> Mapping[str, Object | None]:
            found = await asyncio.gather(*(self._get(resource, name, observed.namespace) for name in names))
            return dict(zip(names, found, strict=True))

        def decided(lookup: Lookup) -> T:
            return decide(complete if lookup is complete.lookup else replace(complete, lookup=lookup))

        return complete, await with_lookups(decided, complete.lookup, look_up)

    async def _with_knative_settings(self, observed: Observed) -> Observed:
        """What Knative's own configuration says about scaling from zero and about domains."""
        if observed.mode is DeploymentMode.STANDARD or KNATIVE_SERVICES not in observed.served:
            return observed
        return replace(
            observed,
            zero_initial_scale=await self._knative.zero_initial_scale(),
            knative_domains=await self._knative.domains(),
        )

    async def _with_version(self, observed: Observed) -> Observed:
        """The version of Kubernetes, which matters only if models may come as image volumes."""
        if observed.config.storage_initializer.oci_mode != "native":
            return observed
        return replace(observed, server_version=await self._client.server_version())

    async def _get(self, resource: Resource, name: str, namespace: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None

"""The webhook at `/mutate-pods`: gathers what a pod's mutation has to know, and answers with the mutated pod.

Settings, services and storage containers come from memory. Service accounts and secrets are read from the API server
when a pod needs them, so that the process never holds a cluster's secrets, nor may list them.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final, Protocol

from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, INFERENCE_SERVICES
from isvc.kube.errors import ApiError, InternalError, NotFound
from isvc.kube.objects import Object, labels_of
from isvc.kube.resource import Resource
from isvc.serving import annotations as names
from isvc.serving.configuration import Configuration
from isvc.serving.credentials import Lookup, NotLookedUp
from isvc.serving.pods import PodFacts, is_ours, mutate_pod
from isvc.serving.refused import Refused
from isvc.toolkit.cache import Reader
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse, allow, deny, patched

PATH: Final = "/mutate-pods"
SYSTEM_NAMESPACE: Final = "kserve"


class Getter(Protocol):
    """The one thing it asks an API server for."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...


class PodMutator:
    """Handles admission requests for pods. Cached kinds have to be watched by whoever owns the reader."""

    def __init__(self, reader: Reader, client: Getter, system_namespace: str = SYSTEM_NAMESPACE) -> None:
        self._reader, self._client, self._system_namespace = reader, client, system_namespace
        self._configuration = Configuration(reader, system_namespace)
        self._reading: dict[tuple[Resource, str, str], asyncio.Task[Object | None]] = {}

    async def __call__(self, request: AdmissionRequest) -> AdmissionResponse:
        pod = request.object
        if not is_ours(pod):
            return allow()
        try:
            return patched(pod, await self._mutated(pod, request.namespace))
        except Refused as error:
            return deny(error.message, 500)

    async def _mutated(self, pod: Object, namespace: str) -> Object:
        """Mutate with what is known; whenever more has to be known, read that and start over."""
        facts = self._facts(pod, namespace)
        while True:
            try:
                return mutate_pod(pod, facts)
            except NotLookedUp as missing:
                read = (self._read(missing.resource, name, namespace) for name in missing.names)
                found = dict(zip(missing.names, await asyncio.gather(*read), strict=True))
                facts = replace(facts, lookup=facts.lookup.knowing(missing.resource, found))

    def _facts(self, pod: Object, namespace: str) -> PodFacts:
        reader = self._reader
        return PodFacts(
            config=self._configuration(),
            lookup=Lookup(namespace),
            service=reader.get(INFERENCE_SERVICES, labels_of(pod)[names.SERVICE], namespace),
            storage_containers=reader.list(CLUSTER_STORAGE_CONTAINERS),
            system_namespace=self._system_namespace,
        )

    async def _read(self, resource: Resource, name: str, namespace: str) -> Object | None:
        """Pods of one workload come many at a time: they share a request that is under way."""
        key = (resource, namespace, name)
        task = self._reading.get(key)
        if task is None:
            task = self._reading[key] = asyncio.create_task(self._get(*key))
            task.add_done_callback(lambda _: self._reading.pop(key, None))
        return await asyncio.shield(task)

    async def _get(self, resource: Resource, namespace: str, name: str) -> Object | None:
        try:
            return await self._client.get(resource, name, namespace)
        except NotFound:
            return None
        except ApiError as error:
            raise InternalError(f'cannot read {resource.kind} "{name}": {error.message}') from error

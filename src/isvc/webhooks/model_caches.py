"""The model caches that a service may use: from memory, and for a new service that none of them holds, as they are now.

People apply a cache and a service together. The service is asked about before a watch has brought the cache here, and
nobody would write the service again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final, Protocol

from isvc.api import LocalModelCache, LocalModelNamespaceCache
from isvc.api.annotations import LOCAL_MODEL, wants_local_model
from isvc.api.defaults.localmodel import Cache
from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, labels_of
from isvc.kube.resource import Resource
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.toolkit.cache import Reader
from isvc.toolkit.client.answers import ObjectList
from isvc.toolkit.reads import Read
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse, allow_change
from isvc.toolkit.webhook.admission import AdmissionHandler
from isvc.webhooks.answers import refusing_malformed

READS: Final = (Read(LOCAL_MODEL_CACHES, optional=True), Read(LOCAL_MODEL_NAMESPACE_CACHES, optional=True))
Default = Callable[[AdmissionRequest, Config, Iterable[Cache]], Object]

log = logging.getLogger(__name__)


class Lister(Protocol):
    """The part of a client that is needed."""

    async def list(self, resource: Resource, namespace: str = "") -> ObjectList: ...


def marking_defaulter(
    reader: Reader, client: Lister, configuration: Configuration, default: Default
) -> AdmissionHandler:
    """Returns the handler of services that `default` marks with a cache, if one of those that it is given fits."""

    def handle(request: AdmissionRequest) -> AdmissionResponse | Awaitable[AdmissionResponse]:
        config = configuration(is_new=request.operation == "CREATE")
        may_use = config.local_model.enabled and wants_local_model(request.object)
        known = _Known(reader, request.namespace)
        service = default(request, config, known if may_use else ())
        if known.were_asked_for and request.operation == "CREATE" and LOCAL_MODEL not in labels_of(service):
            return look_again(request, config, service)
        return allow_change(request.object, service)

    async def look_again(request: AdmissionRequest, config: Config, service: Object) -> AdmissionResponse:
        try:
            caches = await _current(reader, client, request.namespace)
        except ApiError as error:
            log.warning("cannot read model caches: %s", error.message)
            return allow_change(request.object, service)
        return allow_change(request.object, default(request, config, caches) if caches else service)

    return refusing_malformed(handle)


class _Known:
    """The caches in memory, those of the namespace first; for a service without a model nobody asks for them."""

    def __init__(self, reader: Reader, namespace: str) -> None:
        self._reader, self._namespace = reader, namespace
        self.were_asked_for = False

    def __iter__(self) -> Iterator[Cache]:
        self.were_asked_for = True
        own, shared, reader = LOCAL_MODEL_NAMESPACE_CACHES, LOCAL_MODEL_CACHES, self._reader
        return iter(
            _decode(
                reader.list(own, self._namespace) if reader.serves(own) else (),
                reader.list(shared) if reader.serves(shared) else (),
            )
        )


async def _current(reader: Reader, client: Lister, namespace: str) -> list[Cache]:
    """Returns the caches that the API server has, in the same order."""

    async def read(resource: Resource, place: str) -> Sequence[Object]:
        return (await client.list(resource, place)).items if reader.serves(resource) else ()

    return _decode(*await asyncio.gather(read(LOCAL_MODEL_NAMESPACE_CACHES, namespace), read(LOCAL_MODEL_CACHES, "")))


def _decode(own: Iterable[Object], shared: Iterable[Object]) -> list[Cache]:
    return [*map(LocalModelNamespaceCache.decode, own), *map(LocalModelCache.decode, shared)]

"""A namespace, read once: what controllers would have in their caches, and what else explains a service."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from isvc.api import kinds
from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LOCAL_MODEL_NODE_GROUPS,
    SERVING_RUNTIMES,
)
from isvc.engine.plan import Child, Reference
from isvc.insight.diagnosis.pods import named_services
from isvc.kube.errors import Forbidden, NotFound
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of, uid_of
from isvc.kube.resource import (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from isvc.programs.controllers import children_of
from isvc.serving.config import CONFIG_MAP
from isvc.serving.environment import SYSTEM_NAMESPACE
from isvc.serving.thirdparty import GATEWAY_CLASSES, GATEWAYS
from isvc.toolkit.cache import OWNER, Cache, Reader
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.client import Client
from isvc.toolkit.reads import Read
from isvc.toolkit.store import Indexer

SERVICE_OF_POD: Final = "named service"  # an index: the names of services that pods' labels say they belong to
_OURS: Final = tuple(row.resource for row in kinds.KINDS if row.manager)
#: What a service may own, but that leads neither to its pods nor to requests, and that people often may not read.
_LEFT_OUT: Final = frozenset({CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, RESOURCE_CLAIM_TEMPLATES})
#: Kinds whose objects a service may own, which lead from it to its pods.
OWNED: Final = (
    *sorted(frozenset[Resource]().union(*(children_of(row) for row in kinds.KINDS if row.manager)) - _LEFT_OUT),
    REPLICA_SETS,
)
_OF_THE_NAMESPACE: Final = (
    *OWNED,
    PODS,
    EVENTS,
    SERVING_RUNTIMES,
    SERVICE_ACCOUNTS,
    *(resource for resource in _OURS if resource.namespaced),
)
#: Kinds of which each service has some of its own, and there may be thousands.
_OF_MANY_SERVICES: Final = frozenset({*OWNED, PODS, EVENTS, *(row.resource for row in kinds.SERVICES)})
_OF_THE_CLUSTER: Final = (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    LOCAL_MODEL_NODE_GROUPS,
    GATEWAYS,
    GATEWAY_CLASSES,
    *(resource for resource in _OURS if not resource.namespaced),
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`absent` kinds are not installed, `unread` ones not to be read by this user."""

    namespace: Object | None
    system_namespace: str
    objects: dict[Resource, list[Object]]
    absent: frozenset[Resource] = frozenset()
    unread: frozenset[Resource] = frozenset()
    cache: Reader | None = None  # knows objects that are not in `objects`

    def reader(self, reads: Iterable[Read]) -> MemoryReader:
        """Returns the snapshot as a controller with these reads would find it in its cache."""
        found = ((resource, obj) for resource, objects in self.objects.items() for obj in objects)
        return MemoryReader(found, reads=reads, absent=self.absent)

    def live(self, child: Child) -> Object | None:
        """Returns a child as it is now, if it is there and can be read."""
        return self._find(child.resource, Key.of(child.manifest))

    def find_all(self, sources: Iterable[Reference]) -> list[Object]:
        """Returns the objects that these name, as far as they can be read."""
        return [obj for resource, key in sources if (obj := self._find(resource, key)) is not None]

    def _find(self, resource: Resource, key: Key) -> Object | None:
        if self.cache is not None and resource in self.objects:
            return self.cache.get(resource, key.name, key.namespace)
        return next((obj for obj in self.objects.get(resource, ()) if Key.of(obj) == key), None)


@dataclass(slots=True)
class _Lists:
    client: Client
    objects: dict[Resource, list[Object]] = field(default_factory=dict)
    absent: set[Resource] = field(default_factory=set)
    unread: set[Resource] = field(default_factory=set)

    async def add(self, resource: Resource, namespace: str = "", fields: str = "") -> None:
        try:
            found = (await self.client.list(resource, namespace, fields=fields)).items
        except NotFound:
            self.absent.add(resource)
        except Forbidden:
            self.unread.add(resource)
        else:
            self.objects.setdefault(resource, []).extend(found)


async def take(client: Client, namespace: str, system: str = "") -> Snapshot:
    """Reads a namespace, and of the rest of the cluster what services in it depend on.

    The configuration is looked for in all namespaces, unless `system` says where it is.
    """
    lists = _Lists(client)
    await lists.add(CONFIG_MAPS, system, f"metadata.name={CONFIG_MAP}")
    if not system:
        system = next(map(namespace_of, lists.objects.get(CONFIG_MAPS, ())), SYSTEM_NAMESPACE)
    if CONFIG_MAPS in lists.unread:
        await lists.add(CONFIG_MAPS, system, f"metadata.name={CONFIG_MAP}")
    jobs = [lists.add(resource, namespace) for resource in _OF_THE_NAMESPACE]
    jobs += [lists.add(resource) for resource in _OF_THE_CLUSTER]
    if system != namespace:
        jobs.append(lists.add(LLM_INFERENCE_SERVICE_CONFIGS, system))
    found, *_ = await asyncio.gather(_namespace(client, namespace), *jobs)
    return Snapshot(found, system, lists.objects, frozenset(lists.absent), frozenset(lists.unread))


def reads(namespaces: Sequence[str] | None = None) -> tuple[Read, ...]:
    """Returns what a cache has to hold for `of_service`, of services in these namespaces or in all of them."""
    config = Read(CONFIG_MAPS, fields=f"metadata.name={CONFIG_MAP}", optional=True)
    of_services = [Read(kind, optional=True, indexers=_INDEXERS.get(kind, {})) for kind in _OF_THE_NAMESPACE]
    if namespaces is not None:
        presets = Read(LLM_INFERENCE_SERVICE_CONFIGS, SYSTEM_NAMESPACE, optional=True)
        of_services = [replace(read, namespace=each) for read in of_services for each in namespaces]
        of_services += [presets] if namespaces else []
        config = replace(config, namespace=SYSTEM_NAMESPACE)
    return (*of_services, *(Read(kind, optional=True) for kind in (*_OF_THE_CLUSTER, NAMESPACES)), config)


def of_service(cache: Cache, service: Object) -> Snapshot:
    """Reads what one service depends on from a cache: no request, however much else is in its namespace."""
    namespace = namespace_of(service)
    places = [key.namespace for key in cache.all_keys(CONFIG_MAPS) if key.name == CONFIG_MAP]
    configurations = [each for place in places if (each := cache.get(CONFIG_MAPS, CONFIG_MAP, place))]
    objects: dict[Resource, list[Object]] = {CONFIG_MAPS: configurations}
    system = next(map(namespace_of, objects[CONFIG_MAPS]), SYSTEM_NAMESPACE)
    owned = _owned_objects(cache, service)
    for resource in _OF_THE_NAMESPACE:
        if resource in _OF_MANY_SERVICES:
            objects[resource] = owned.get(resource, [])
        else:
            objects[resource] = cache.list(resource, namespace)
    if service.get("kind") != INFERENCE_SERVICES.kind:  # graphs and models refer to services
        objects[INFERENCE_SERVICES] = cache.list(INFERENCE_SERVICES, namespace)
    for resource in _OF_THE_CLUSTER:
        objects[resource] = cache.list(resource)
    if system != namespace:
        objects[LLM_INFERENCE_SERVICE_CONFIGS] += cache.list(LLM_INFERENCE_SERVICE_CONFIGS, system)
    unread = frozenset(resource for resource in objects if cache.forbids(resource))
    absent = frozenset(resource for resource in objects if not cache.serves(resource)) - unread
    return Snapshot(cache.get(NAMESPACES, namespace), system, objects, absent, unread, cache)


def _owned_objects(cache: Cache, service: Object) -> dict[Resource, list[Object]]:
    """Returns the service, what it controls, what that controls, its pods, and the events of all of them."""
    kind = next(resource for resource in _OURS if resource.kind == service.get("kind"))
    found: dict[Resource, dict[str, Object]] = {kind: {uid_of(service): service}}
    last = [uid_of(service)]
    while last:
        owners, last = last, []
        for resource in (*OWNED, PODS):
            known = found.setdefault(resource, {})
            for obj in (each for owner in owners for each in cache.by_index(resource, OWNER, owner)):
                if uid_of(obj) not in known:
                    known[uid_of(obj)] = obj
                    last.append(uid_of(obj))
    for pod in cache.by_index(PODS, SERVICE_OF_POD, name_of(service)):
        if namespace_of(pod) == namespace_of(service):
            found[PODS][uid_of(pod)] = pod
    uids = [uid for each in found.values() for uid in each]
    found[EVENTS] = {uid_of(each): each for uid in uids for each in cache.by_index(EVENTS, _INVOLVED, uid)}
    return {resource: list(each.values()) for resource, each in found.items()}


def _involved_uid(event: Object) -> Iterable[str]:
    return (str(dig(event, "involvedObject", "uid")),)


_INVOLVED: Final = "involved"
_INDEXERS: Final[Mapping[Resource, Mapping[str, Indexer]]] = {
    PODS: {SERVICE_OF_POD: named_services},
    EVENTS: {_INVOLVED: _involved_uid},
}


async def _namespace(client: Client, name: str) -> Object | None:
    try:
        return await client.get(NAMESPACES, name)
    except (NotFound, Forbidden):
        return None

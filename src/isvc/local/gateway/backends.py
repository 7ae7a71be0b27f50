"""The backends that there are, as clusters of Envoy's: made anew for a Service or InferencePool that has changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from isvc.kube.objects import Key, Object
from isvc.kube.resource import ENDPOINT_SLICES, SERVICES, Resource
from isvc.local.gateway.endpoints import pools
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.endpoints.services import SERVICE_OF_SLICE, Port, ports, slice_endpoints
from isvc.local.gateway.envoy.clusters import cluster
from isvc.local.gateway.envoy.routes import Way
from isvc.local.gateway.envoy.types import OWN_CLUSTER, Json
from isvc.local.gateway.routes.rules import Backend


class Reader(Protocol):
    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None: ...
    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]: ...
    def list(self, resource: Resource, namespace: str = "") -> list[Object]: ...


class Target(NamedTuple):
    """A Service, or an InferencePool of this kind."""

    key: Key
    pool: Resource | None = None


@dataclass(frozen=True, slots=True)
class Members:
    """The endpoints of a cluster: those that take requests, and those that do not, or no longer."""

    ready: tuple[Endpoint, ...] = ()
    others: tuple[Endpoint, ...] = ()


class Known(NamedTuple):
    """A cluster, as it was last seen."""

    definition: Json
    members: Members


@dataclass(slots=True)
class Changes:
    """What is different since the last look; what has become empty is sent last, when no route leads there directly."""

    clusters: dict[str, Json] = field(default_factory=dict)
    members: dict[str, Members] = field(default_factory=dict)
    emptied: dict[str, Members] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    targets: set[Target] = field(default_factory=set)  # whose ways are others now
    services: set[Target] = field(default_factory=set)  # that have come, gone, or changed their ports


class Backends:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[Target, dict[str, Known]] = {}
        self._ports: dict[Key, tuple[Port, ...]] = {}
        self._due: set[Target] = set()
        self.is_limited: Callable[[Key], bool] = lambda key: False  # whether pods take only so many requests at a time

    def changed(self, target: Target) -> None:
        self._due.add(target)

    def ports(self, key: Key) -> tuple[Port, ...] | None:
        """Returns the ports of a Service; None if there is no such Service."""
        return self._ports.get(key)

    def members(self, name: str) -> Members:
        """Returns the endpoints of a cluster."""
        known = self._known.get(cluster_target(name)[0], {}).get(name)
        return known.members if known is not None else Members()

    def clusters_with(self, endpoint: Endpoint) -> list[str]:
        """Returns the clusters that an endpoint is in, whether it takes requests or not."""
        known = (found for clusters in self._known.values() for found in clusters.items())
        return [name for name, each in known if endpoint in (*each.members.ready, *each.members.others)]

    def way(self, backend: Backend) -> Way:
        """Returns how a backend is reached. Envoy asks about requests that it cannot take to an endpoint by itself."""
        target = Target(Key(backend.namespace, backend.service), backend.pool)
        clusters = self._known.get(target, {})
        if backend.pool is not None:
            name = pool_cluster(target)
            return Way(name, OWN_CLUSTER, picks=name in clusters)
        name = self._cluster_of(backend)
        known = clusters.get(name)
        is_direct = known is not None and known.members.ready and not self.is_limited(target.key)
        return Way(name) if is_direct else Way(name, OWN_CLUSTER)

    def why_unavailable(self, key: Key, port: int | str) -> str:
        """Returns why no request can go to a Service's port; nothing if one can."""
        known = self._ports.get(key)
        if known is None:
            return f"Service {key} does not exist"
        if port not in {each for found in known for each in (found.number, found.name)}:
            numbers = ", ".join(str(each.number) for each in known)
            return f"Service {key} has no port {port}, only {numbers or 'none'}"
        members = self.members(service_cluster(key, port))
        if members.ready:
            return ""
        count = len(members.others)
        found = f"{count} endpoint{'s' if count != 1 else ''}, none ready" if count else "no endpoints"
        return f"Service {key} has {found}"

    def _cluster_of(self, backend: Backend) -> str:
        key = Key(backend.namespace, backend.service)
        named = (port.number for port in self._ports.get(key, ()) if backend.port in (port.number, port.name))
        return service_cluster(key, next(named, backend.port))

    def update(self) -> Changes:
        """Looks at what has changed."""
        changes = Changes()
        due, self._due = self._due, set()
        for target in due:
            before, after = self._known.get(target, {}), self._look(target)
            if after:
                self._known[target] = after
            else:
                self._known.pop(target, None)
            _compare(target, before, after, changes)
        return changes

    def _look(self, target: Target) -> dict[str, Known]:
        if target.pool is not None:
            return self._look_at_pool(target, target.pool)
        key = target.key
        service = self._reader.get(SERVICES, key.name, key.namespace)
        if service is None:
            self._ports.pop(key, None)
            return {}
        slices = self._reader.by_index(ENDPOINT_SLICES, SERVICE_OF_SLICE, str(key))
        self._ports[key] = tuple(ports(service))
        return {
            service_cluster(key, port.number): _service_port(key, port, slices, picked=self.is_limited(key))
            for port in self._ports[key]
        }

    def _look_at_pool(self, target: Target, resource: Resource) -> dict[str, Known]:
        pool = self._reader.get(resource, target.key.name, target.key.namespace)
        if pool is None:
            return {}
        name = pool_cluster(target)
        ready = pools.members(self._reader.list(pools.PODS, target.key.namespace), pool)
        members = Members(tuple(dict.fromkeys(member.endpoint for member in ready)))
        return {name: Known(cluster(name, str(target.key), http2=False, picked=True), members)}


def service_cluster(key: Key, port: int | str) -> str:
    return f"{key}:{port}"


def pool_cluster(target: Target) -> str:
    assert target.pool is not None
    return f"{target.pool.kind}.{target.pool.group} {target.key}"


def cluster_target(name: str) -> tuple[Target, int | str]:
    """Returns what a cluster is of, and of a Service its port."""
    if " " in name:
        kind, _, key = name.partition(" ")
        return Target(Key(*key.split("/")), pools.POOLS_BY_GROUP[kind.partition(".")[2]]), ""
    key, _, port = name.rpartition(":")
    return Target(Key(*key.split("/"))), int(port) if port.isdigit() else port


def _service_port(key: Key, port: Port, slices: Iterable[Object], *, picked: bool) -> Known:
    endpoints = dict(slice_endpoints(slices, port.name))
    ready = tuple(sorted(endpoint for endpoint, is_ready in endpoints.items() if is_ready))
    others = tuple(sorted(endpoint for endpoint, is_ready in endpoints.items() if not is_ready))
    name = service_cluster(key, port.number)
    return Known(cluster(name, str(key), http2=port.http2, picked=picked), Members(ready, others))


def _compare(target: Target, before: Mapping[str, Known], after: Mapping[str, Known], changes: Changes) -> None:
    nothing = Known({}, Members())
    for name, now in after.items():
        was = before.get(name, nothing)
        if now.definition != was.definition:
            changes.clusters[name] = now.definition
            changes.targets.add(target)
        if now.members != was.members or name not in before:
            has_emptied = was.members.ready and not now.members.ready
            (changes.emptied if has_emptied else changes.members)[name] = now.members
        if bool(now.members.ready) != bool(was.members.ready):
            changes.targets.add(target)
    changes.gone |= before.keys() - after.keys()
    if before.keys() != after.keys():
        changes.targets.add(target)
        if target.pool is None:
            changes.services.add(target)

"""The API server of simulations, as a client and as the cache of the engine: it fails and lags behind when told to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping

import orjson

from isvc.engine.outcome import Outcome
from isvc.engine.plan import Child, ChildKey, Part, Plan, Want
from isvc.insight.simulation.clock import SimulatedClock
from isvc.insight.simulation.server import MemoryServer, Target
from isvc.insight.simulation.simulation import KUBERNETES
from isvc.kube.objects import Object, deep_copy, name_of, resource_version_of
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.client import Client
from isvc.toolkit.client.transport import Call

NAMESPACE = "ns"
OWNER: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "boss", "namespace": NAMESPACE, "uid": "owner"},
}


class _Api(MemoryServer):
    """Notes requests; admits with a function that a test can choose."""

    def __init__(self) -> None:
        super().__init__(MemoryReader(), SimulatedClock(), KUBERNETES)
        self.requests: list[str] = []
        self.fails: dict[str, Exception] = {}
        self.change: Callable[[Object], Object] = lambda obj: obj
        self.admission = self

    async def admit(self, resource: Resource, new: Object, old: Object | None = None) -> Object:
        return self.change(new)

    async def exchange(self, call: Call) -> bytes:
        target = Target.parse(call.target)
        name = target.name or name_of(orjson.loads(call.body or b"{}"))
        verb = "DRY-RUN" if target.dry_run else call.method
        self.requests.append(f"{verb} {target.resource.kind} {name}")
        if error := self.fails.pop(f"{verb} {name}", None):
            raise error
        return await super().exchange(call)


class Stored(MutableMapping[tuple[Resource, str], Object]):
    """What the server has in the namespace, by resource and name."""

    def __init__(self, objects: MemoryReader) -> None:
        self._objects = objects

    def __getitem__(self, key: tuple[Resource, str]) -> Object:
        if (found := self._objects.get(*key, NAMESPACE)) is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: tuple[Resource, str], obj: Object) -> None:
        self._objects.put(key[0], obj)

    def __delitem__(self, key: tuple[Resource, str]) -> None:
        self._objects.remove(*key, NAMESPACE)

    def __iter__(self) -> Iterator[tuple[Resource, str]]:
        kinds = list(self._objects._objects)
        return iter([(kind, name_of(obj)) for kind in kinds for obj in self._objects.list(kind)])

    def __len__(self) -> int:
        return len(list(iter(self)))


class Server(Client):
    """A client of it, with which the engine writes."""

    def __init__(self) -> None:
        self._api = _Api()
        super().__init__(self._api)
        self.reader = self._api.objects
        self.objects = Stored(self.reader)
        self.fails = self._api.fails
        self.unseen: set[tuple[Resource, str]] = set()  # by the engine's cache, which may lag behind

    @property
    def admit(self) -> Callable[[Object], Object]:
        return self._api.change

    @admit.setter
    def admit(self, change: Callable[[Object], Object]) -> None:
        self._api.change = change

    def edit(self, resource: Resource, name: str) -> Object:
        """Somebody's edit: the stored object, as a new version, to be changed in place."""
        return self._api.put(resource, deep_copy(self.objects[resource, name]))

    def peek(self, resource: Resource, name: str) -> Object | None:
        return None if (resource, name) in self.unseen else self.objects.get((resource, name))

    def taken_requests(self) -> list[str]:
        requests, self._api.requests = self._api.requests, []
        return requests


class Memory:
    """The same objects, read without waiting."""

    def __init__(self, server: Server) -> None:
        self.server, reader = server, server.reader
        self.serves, self.list, self.all_keys, self.keys = reader.serves, reader.list, reader.all_keys, reader.keys
        self.edition, self.by_index = reader.edition, reader.by_index
        self.own_writes: set[str] = set()  # versions

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self.server.peek(resource, name)

    def note(self, resource: Resource, obj: Object, *, owner: Object | None = None) -> None:
        self.server.unseen.discard((resource, name_of(obj)))
        if owner is not None:
            self.own_writes.add(resource_version_of(obj))


def live_of(outcome: Outcome, name: str) -> Object:
    live = outcome.live(CONFIG_MAPS, name)
    assert live is not None
    return live


def config(name, labels=None, **data):
    metadata = {"name": name, "namespace": "ns", **({"labels": labels} if labels else {})}
    return Child(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def plan(*children, kinds=(CONFIG_MAPS,), **part):
    return Plan((Part("all", Want(children), frozenset(kinds), **part),))


def result(outcome, name, resource=CONFIG_MAPS):
    return outcome.results[ChildKey(resource, name, NAMESPACE)]

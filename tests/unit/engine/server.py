"""Objects in memory that behave as an API server does where it matters to the engine, and as its cache."""

from __future__ import annotations

from isvc.engine.outcome import ChildKey, Outcome
from isvc.engine.plan import Child, Part, Plan, Want
from isvc.kube.errors import AlreadyExists, Conflict, NotFound
from isvc.kube.objects import Key, Object, deep_copy, name_of, uid_of
from isvc.kube.owners import is_controlled_by
from isvc.kube.resource import CONFIG_MAPS, Resource

OWNER: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "boss", "namespace": "ns", "uid": "owner"},
}


class Server:
    """Objects by resource and name; also the memory of the engine, which may lag behind."""

    def __init__(self) -> None:
        self.field_manager = "isvc"
        self.objects: dict[tuple[Resource, str], dict] = {}
        self.requests: list[str] = []
        self.unseen: set[tuple[Resource, str]] = set()
        self.fails: dict[str, Exception] = {}
        self.admit = lambda obj: obj
        self._version = 0

    # -- as an API server

    async def create(self, resource, obj):
        self._request("POST", resource, name_of(obj))
        if (resource, name_of(obj)) in self.objects:
            raise AlreadyExists(f"{name_of(obj)} already exists")
        return self._store(resource, {**obj, "metadata": {**obj["metadata"], "uid": f"{resource}/{name_of(obj)}"}})

    async def get(self, resource, name, namespace=""):
        self._request("GET", resource, name)
        if (resource, name) not in self.objects:
            raise NotFound(name)
        return self.objects[resource, name]

    async def update(self, resource, obj, *, dry_run=False):
        self._request("DRY-RUN" if dry_run else "PUT", resource, name_of(obj))
        live = self.objects.get((resource, name_of(obj)))
        if live is None:
            raise NotFound(name_of(obj))
        if obj["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]:
            raise Conflict("modified")
        return self.admit(deep_copy(obj)) if dry_run else self._store(resource, obj)

    async def delete(self, resource, name, namespace, *, uid, propagation):
        self._request("DELETE", resource, name)
        live = self.objects.get((resource, name))
        if live is None:
            raise NotFound(name)
        if uid_of(live) != uid:
            raise Conflict("another uid")
        return self.objects.pop((resource, name))

    def edit(self, resource, name):
        """Somebody's edit: the stored object, as a new version, to be changed in place."""
        return self._store(resource, self.objects[resource, name])

    # -- as a memory

    def note(self, resource, obj, *, owner=None):
        self.unseen.discard((resource, name_of(obj)))

    def list(self, resource, namespace=""):
        return [obj for (kind, _), obj in self.objects.items() if kind == resource]

    def serves(self, resource):
        return True

    def peek(self, resource, name):
        return None if (resource, name) in self.unseen else self.objects.get((resource, name))

    def _store(self, resource, obj):
        self._version += 1
        stored = self.admit(deep_copy(obj))
        stored["metadata"]["resourceVersion"] = str(self._version)
        self.objects[resource, name_of(obj)] = stored
        return stored

    def _request(self, verb, resource, name):
        self.requests.append(f"{verb} {resource.kind} {name}")
        if error := self.fails.pop(f"{verb} {name}", None):
            raise error

    def taken_requests(self):
        requests, self.requests = self.requests, []
        return requests


class Memory:
    """The same objects, read without waiting."""

    def __init__(self, server):
        self.server = server
        self.serves, self.note = server.serves, server.note

    def get(self, resource, name, namespace=""):
        return self.server.peek(resource, name)

    def list(self, resource, namespace=""):
        return self.server.list(resource, namespace)

    def edition(self, resource):
        raise NotImplementedError("the engine reads children one by one")

    def by_index(self, resource, index_name, value):
        return [obj for obj in self.list(resource) if is_controlled_by(obj, value)]

    def all_keys(self, resource, namespace=""):
        return sorted(map(Key.of, self.list(resource, namespace)))

    def keys(self, resource, index_name, value):
        return [Key.of(obj) for obj in self.by_index(resource, index_name, value)]


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
    return outcome.results[ChildKey(resource, name)]

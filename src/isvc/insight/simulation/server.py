"""An API server in memory behind the client: it stores, completes and refuses as Kubernetes would, as far as
controllers can tell.

Objects live in a `MemoryReader`, which controllers read as their cache. Nothing is persistent, and nobody else writes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

import orjson

from isvc.api.resources import GROUP
from isvc.apiserver import refusals
from isvc.apiserver.objects.metadata import tidy
from isvc.insight.simulation.filled_in import with_allotted, with_known_defaults
from isvc.insight.simulation.kinds import BY_PATH
from isvc.kube.builtin import check_types, complete
from isvc.kube.errors import BadRequest, NotFound
from isvc.kube.objects import (
    Object,
    content_of,
    deep_copy,
    dig,
    finalizers_of,
    generation_of,
    is_being_deleted,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from isvc.kube.patch import merge_patch
from isvc.kube.resource import Resource
from isvc.kube.selectors import LabelSelector
from isvc.kube.timestamps import timestamp
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.client.transport import Call, Transport
from isvc.toolkit.clock import Clock
from isvc.webhooks.live_reads import Getter

Changed = Callable[[Resource, Object | None, Object | None], None]
Place = tuple[Resource, str, str]  # resource, namespace and name
_GIVEN_BY_SERVER = ("uid", "creationTimestamp", "deletionTimestamp", "generation", "managedFields")


class Target(NamedTuple):
    """What a URL addresses."""

    resource: Resource
    namespace: str
    name: str
    subresource: str
    params: dict[str, str]

    @classmethod
    def parse(cls, target: str) -> Target:
        url = urlsplit(target)
        root, *parts = [unquote(part) for part in url.path.strip("/").split("/")]
        group = parts.pop(0) if root == "apis" else ""
        version = parts.pop(0)
        namespace = ""
        if parts[0] == "namespaces" and len(parts) > 2:
            _, namespace, *parts = parts
        plural, name, subresource, *_ = [*parts, "", ""]
        resource = BY_PATH.get((group, version, plural))
        if resource is None:
            raise refusals.unknown_resource()
        params = {key: values[-1] for key, values in parse_qs(url.query).items()}
        return cls(resource, namespace, name, subresource, params)

    @property
    def dry_run(self) -> bool:
        return "dryRun" in self.params


class Admitting(Protocol):
    async def admit(self, resource: Resource, new: Object, old: Object | None = None) -> Object:
        """Returns the object as it is stored; raises the `ApiError` that a client would get."""


class MemoryServer(Transport):
    """`changed` is called with every change.

    `written` has the last manifest that was sent for each object, `authors` the object that it was written for. With
    an `upstream`, what is not in memory is looked for there: objects that no controller watches.
    """

    def __init__(self, objects: MemoryReader, clock: Clock, version: tuple[str, str]) -> None:
        super().__init__(ClusterConfig("memory:"), clock)
        self.objects = objects
        self.admission: Admitting | None = None
        self.upstream: Getter | None = None
        self.changed: Changed = lambda resource, before, after: None
        self.written: dict[Place, Object] = {}
        self.author: Place | None = None  # the object that is being reconciled
        self.authors: dict[Place, Place] = {}
        self.missed: dict[Place, None] = {}  # what was asked for and is not there, in order
        self._now = clock.now
        self._server_version = version
        self._last_version = 0

    async def exchange(self, call: Call) -> bytes:
        if call.target == "/version":
            major, minor = self._server_version
            return orjson.dumps({"major": major, "minor": minor})
        target = Target.parse(call.target)
        body: Any = orjson.loads(call.body) if call.body else {}
        match call.method:
            case "GET":
                answer = await self._read(target)
            case "POST":
                answer = await self._create(target, body)
            case "PUT":
                answer = await self._update(target, body)
            case "PATCH":
                patched = merge_patch.apply(await self._live(target), body)
                answer = await self._update(target, patched)
            case "DELETE":
                answer = await self._delete(target, body)
            case _:
                raise refusals.method_not_allowed()
        return orjson.dumps(answer)

    # -- verbs ------------------------------------------------------------------------------------------------------

    async def _read(self, target: Target) -> Object:
        if target.name:
            return await self._live(target)
        selector = LabelSelector.parse(target.params.get("labelSelector", ""))
        found = self.objects.list(target.resource, target.namespace)
        return {"items": [obj for obj in found if selector.matches(labels_of(obj))]}

    async def _create(self, target: Target, obj: Object) -> Object:
        resource, metadata = target.resource, obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + "00000"
        if resource.namespaced:
            metadata.setdefault("namespace", target.namespace)
        self._note_written(target, obj)
        for field in (*_GIVEN_BY_SERVER, "resourceVersion"):
            metadata.pop(field, None)
        obj.pop("status", None)
        if await self._find(resource, namespace_of(obj), name_of(obj)) is not None:
            raise refusals.already_exists(resource, name_of(obj))
        stored = await self._complete(resource, obj, None)
        identity = f"{resource}/{namespace_of(stored)}/{name_of(stored)}"
        stored["metadata"] |= {
            "uid": str(uuid.uuid5(uuid.NAMESPACE_URL, identity)),
            "creationTimestamp": timestamp(self._now()),
            "generation": 1,
        }
        return stored if target.dry_run else self.put(_stored_as(resource, stored), stored)

    async def _update(self, target: Target, obj: Object) -> Object:
        resource, live = target.resource, await self._live(target)
        if not target.dry_run and not target.subresource:
            self._note_written(target, obj)
        version = obj["metadata"].get("resourceVersion")
        if version and version != live["metadata"].get("resourceVersion"):
            raise refusals.modified(resource, target.name)
        if target.subresource == "status":
            stored = {**live, "status": obj.get("status") or {}}
        else:
            metadata = {
                **obj["metadata"],
                **{f: live["metadata"][f] for f in _GIVEN_BY_SERVER if f in live["metadata"]},
            }
            stored = await self._complete(resource, deep_copy({**obj, "metadata": metadata}), live)
            if "status" in live:
                stored["status"] = live["status"]
            if content_of(stored) != content_of(live):
                stored["metadata"]["generation"] = generation_of(live) + 1
        if target.dry_run or stored == live:
            return stored
        if is_being_deleted(stored) and not finalizers_of(stored):
            return self._remove(resource, stored)
        return self.put(resource, deep_copy(stored))

    async def _delete(self, target: Target, options: Object) -> Object:
        live = await self._live(target)
        uid = dig(options, "preconditions", "uid")
        if uid and uid != uid_of(live):
            raise refusals.outdated_deletion(target.resource, target.name, "UID", uid, uid_of(live))
        if not finalizers_of(live):
            return self._remove(target.resource, live)
        leaving = {**live, "metadata": {**live["metadata"], "deletionTimestamp": timestamp(self._now())}}
        return self.put(target.resource, leaving)

    # -- objects ----------------------------------------------------------------------------------------------------

    def put(self, resource: Resource, obj: Object) -> Object:
        """Stores an object as it is, with a new version."""
        before = self.objects.get(resource, name_of(obj), namespace_of(obj))
        self._last_version += 1
        obj["metadata"]["resourceVersion"] = f"simulated-{self._last_version}"
        self.objects.put(resource, obj)
        self.changed(resource, before, obj)
        return obj

    def _remove(self, resource: Resource, obj: Object) -> Object:
        self.objects.remove(resource, name_of(obj), namespace_of(obj))
        self.missed[resource, namespace_of(obj), name_of(obj)] = None
        self.written.pop((resource, namespace_of(obj), name_of(obj)), None)
        self.changed(resource, obj, None)
        return obj

    async def _live(self, target: Target) -> Object:
        resource, namespace, name = target[:3]
        found = await self._find(resource, namespace, name)
        if found is None:
            self.missed[resource, namespace, name] = None
            raise refusals.not_found(resource, name)
        return found

    async def _find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        found = self.objects.get(resource, name, namespace)
        if found is not None or self.upstream is None or (resource, namespace, name) in self.missed:
            return found
        try:
            found = await self.upstream.get(resource, name, namespace)
        except NotFound:
            self.missed[resource, namespace, name] = None
            return None
        self.objects.put(resource, found)
        return found

    async def _complete(self, resource: Resource, obj: Object, live: Object | None) -> Object:
        """Returns what is made of a new object, or of one that is to replace a live one."""
        assert self.admission is not None
        admitted = await self.admission.admit(resource, obj, live)
        if resource.group == GROUP:
            return admitted
        if not isinstance(admitted.get("metadata"), dict):
            raise BadRequest("metadata must be an object")
        check_types(admitted)
        known = complete(admitted)
        stored = known or admitted
        if live is not None:
            stored = (with_allotted if known else with_known_defaults)(stored, live, resource)
        tidy(stored["metadata"])
        return stored

    def _note_written(self, target: Target, obj: Object) -> None:
        if not target.dry_run:
            place = target.resource, namespace_of(obj), name_of(obj)
            self.written[place] = deep_copy(obj)
            if self.author:
                self.authors[place] = self.author


def _stored_as(resource: Resource, obj: Object) -> Resource:
    group, _, version = obj["apiVersion"].rpartition("/")
    return BY_PATH[group, version, resource.plural]

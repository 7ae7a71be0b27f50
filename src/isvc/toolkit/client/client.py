"""The verbs of the API, each as a method that takes and returns plain objects.

Every call has a deadline; 429 and 503 are waited out as the server asks; refusals are raised as isvc.kube.errors,
and a cluster that cannot be reached as isvc.toolkit.failure.Unreachable. Watches are streamed with bookmarks, and
their lines may be of any length.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing
from enum import StrEnum
from functools import lru_cache
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode

import msgspec
import orjson

from isvc.kube.errors import NotFound, from_status
from isvc.kube.objects import Key, Object, name_of, namespace_of
from isvc.kube.resource import Resource
from isvc.toolkit.client.answers import (
    ObjectList,
    Page,
    WatchEvent,
    decode_head,
    decode_line,
    decode_map,
    decode_object,
    decode_page,
    split_lines,
)
from isvc.toolkit.client.kubeconfig import ClusterConfig
from isvc.toolkit.client.transport import Call, Fence, Observer, Transport
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.failure import Unreachable

T = TypeVar("T")

FIELD_MANAGER = "isvc"
DEADLINE = 30.0
LIST_DEADLINE = 60.0
PAGE = 500
LONGEST_LINE = 1 << 20  # bytes
WATCH_SECONDS = (290, 580)  # the server ends a watch after a random time in this range, so that not all end at once


class PatchKind(StrEnum):
    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Client:
    def __init__(self, transport: Transport, *, fenced: bool = True, field_manager: str = FIELD_MANAGER) -> None:
        self._transport = transport
        self._fenced = fenced
        self._server_version: tuple[str, str] | None = None
        self.field_manager = field_manager

    @classmethod
    def connect(
        cls, config: ClusterConfig, *, clock: Clock | None = None, field_manager: str = FIELD_MANAGER
    ) -> Client:
        """Returns a client for that cluster. Nothing is sent, and no connection opened, before the first call."""
        return cls(Transport(config, clock or SystemClock()), field_manager=field_manager)

    def without_fence(self) -> Client:
        """Returns a client on the same connections, for what every replica may write (leases, certificates)."""
        return Client(self._transport, fenced=False, field_manager=self.field_manager)

    def guard(self, fence: Fence | None) -> None:
        """Runs `fence` right before each write; it raises when we may not write."""
        self._transport.fence = fence

    def observe(self, observer: Observer | None) -> None:
        """Calls `observer` with each answer: of a stream when it begins."""
        self._transport.observer = observer

    @property
    def config(self) -> ClusterConfig:
        return self._transport.config

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        if not _can_be_name(name):
            raise NotFound(f'{resource} "{name}" not found')
        return await self._call("GET", _path(resource, namespace, name))

    async def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """Returns an object, or None where there is none."""
        try:
            return await self.get(resource, name, namespace)
        except NotFound:
            return None

    async def version(self, resource: Resource, name: str, namespace: str = "") -> str:
        """Returns an object's resourceVersion, for which the server sends metadata alone."""
        found = await self.request("GET", _path(resource, namespace, name), headers={"Accept": _METADATA})
        return str(found["metadata"]["resourceVersion"])

    async def list(self, resource: Resource, namespace: str = "", *, labels: str = "", fields: str = "") -> ObjectList:
        items: list[Object] = []
        version = ""
        async with aclosing(self.pages(resource, namespace, labels=labels, fields=fields)) as pages:
            async for page in pages:
                items += page.objects(resource)
                version = page.resource_version
        return ObjectList(items, version)

    async def pages(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[Page, None]:
        """Yields a list, page by page. Raises Gone when the list expires half-way."""
        params = _selectors(labels, fields) | {"limit": str(PAGE)}
        headers = {"Accept": _METADATA_LIST} if metadata_only else None
        while True:
            target = _path(resource, namespace) + "?" + urlencode(params)
            call = Call("GET", target, None, headers, LIST_DEADLINE)
            page = self._decode(decode_page, await self._transport.exchange(call))
            yield page
            if not page.metadata.next_page:
                return
            params["continue"] = page.metadata.next_page

    async def create(
        self,
        resource: Resource,
        obj: Object,
        namespace: str = "",
        *,
        dry_run: bool = False,
        field_manager: str | None = None,
        patience: float = 0.0,
    ) -> Object:
        """Create; with `patience`, here and below, other writes may be let by for so many seconds."""
        target = _path(resource, namespace or namespace_of(obj)) + self._write_params(field_manager, dry_run)
        return await self._call("POST", target, orjson.dumps(obj), patience=patience)

    async def update(
        self,
        resource: Resource,
        obj: Object,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str | None = None,
        patience: float = 0.0,
    ) -> Object:
        """Replace; a Conflict is raised when the object carries a resourceVersion that is not the newest."""
        target = _path(resource, namespace_of(obj), name_of(obj), subresource)
        target += self._write_params(field_manager, dry_run)
        return await self._call("PUT", target, orjson.dumps(obj), patience=patience)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        kind: PatchKind = PatchKind.MERGE,
        subresource: str = "",
        field_manager: str | None = None,
        force: bool = False,
        dry_run: bool = False,
        patience: float = 0.0,
    ) -> Object:
        target = _path(resource, namespace, name, subresource) + self._write_params(field_manager, dry_run)
        if force:
            target += "&force=true"
        return await self._call("PATCH", target, orjson.dumps(patch), kind.value, patience)

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        uid: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
    ) -> Object:
        """Delete; with `uid` only that very object. `propagation`: Background, Foreground or Orphan."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if propagation:
            options["propagationPolicy"] = propagation
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        return await self._call("DELETE", _path(resource, namespace, name), orjson.dumps(options))

    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[WatchEvent, None]:
        """Yields changes after `resource_version`, bookmarks among them, until the server ends the watch.

        Raises Gone when that version is too old (list again), Unreachable when the connection breaks.
        """
        params = _selectors(labels, fields) | {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),  # noqa: S311 - spreads load
        }
        target = _path(resource, namespace) + "?" + urlencode(params)
        headers = {"Accept": _METADATA} if metadata_only else None
        stream = self._transport.stream(target, headers, silence=WATCH_SECONDS[1] + 20)
        async with stream as chunks, aclosing(split_lines(chunks)) as lines:
            async for line in lines:
                if (event := self._decode(decode_line, line)) is None:
                    continue
                if event.type == "ERROR":
                    status = self._decode(decode_map, event.object)
                    raise from_status(int(status.get("code") or 500), status)
                found = self._decode(decode_head, event.object).metadata
                yield WatchEvent(event.type, Key(found.namespace, found.name), found.version, event.object)

    async def server_version(self) -> tuple[str, str]:
        """Returns the major and minor version of Kubernetes, asked for once."""
        if self._server_version is None:
            answer = self._decode(decode_map, await self.request_bytes("GET", "/version"))
            self._server_version = (str(answer.get("major", "")), str(answer.get("minor", "")))
        return self._server_version

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        within: float = DEADLINE,
    ) -> Any:
        """Makes any other call; `body` and the answer are JSON."""
        target = path + ("?" + urlencode(params) if params else "")
        answer = await self.request_bytes(
            method, target, None if body is None else orjson.dumps(body), content_type, headers, within
        )
        return self._decode(orjson.loads, answer) if answer else None

    async def request_bytes(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        within: float = DEADLINE,
    ) -> bytes:
        sent = dict(headers or ())
        if body is not None:
            sent["Content-Type"] = content_type
        fenced = self._fenced and method not in ("GET", "HEAD")
        return await self._transport.exchange(Call(method, target, body, sent, within, fenced))

    def post_stream(self, target: str, body: bytes, within: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Yields the answer to JSON as it comes, from a program behind the API server."""
        return self._transport.stream(target, {"Content-Type": "application/json"}, within, body, within)

    async def lines(self, path: str, params: Mapping[str, str] | None = None) -> AsyncGenerator[bytes, None]:
        """Yields a streamed answer, line by line, such as a pod's log; a line without an end comes in pieces."""
        target = path + ("?" + urlencode(params) if params else "")
        async with self._transport.stream(target) as chunks, aclosing(split_lines(chunks, LONGEST_LINE)) as lines:
            async for line in lines:
                yield line

    async def _call(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        content_type: str = "application/json",
        patience: float = 0.0,
    ) -> Object:
        headers = {"Content-Type": content_type} if body is not None else None
        fenced = self._fenced and method != "GET"
        answer = await self._transport.exchange(Call(method, target, body, headers, DEADLINE, fenced, patience))
        return self._decode(decode_object if method == "GET" else decode_map, answer)

    def _decode(self, decode: Callable[[bytes], T], body: bytes | msgspec.Raw) -> T:
        try:
            return decode(body)
        except (msgspec.MsgspecError, orjson.JSONDecodeError):  # a proxy's page, or half a line
            raise Unreachable(f"{self.config.server} did not answer as an API server does") from None

    def _write_params(self, field_manager: str | None, dry_run: bool) -> str:
        params = "?fieldManager=" + _quote(field_manager or self.field_manager)
        return params + "&dryRun=All" if dry_run else params


_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"


def _path(resource: Resource, namespace: str = "", name: str = "", subresource: str = "") -> str:
    return resource.path(_quote(namespace), _quote(name), subresource)


def _can_be_name(name: str) -> bool:
    """Returns whether an object can have a name, which may be what somebody wrote into a spec.

    An API server takes others for a list, a subresource or a mistake of the client: it would seem to be ours.
    """
    return name not in ("", ".", "..") and not any(each in name for each in "/%")


@lru_cache(maxsize=1024)
def _quote(part: str) -> str:
    return quote(part, safe="")


def _selectors(labels: str, fields: str) -> dict[str, str]:
    return {name: value for name, value in (("labelSelector", labels), ("fieldSelector", fields)) if value}

"""Events that people see in `kubectl describe`: written in the background, and counted up instead of repeated.

Telling an event never waits and never fails: a reconcile is not held up by its own commentary. An event told again
within ten minutes raises the count of the first; one told again before it was even written costs no request at all.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import NamedTuple

from isvc.kube.errors import ApiError, NotFound
from isvc.kube.objects import Object, name_of, namespace_of, resource_version_of, uid_of
from isvc.kube.resource import EVENTS
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, SystemClock, timestamp
from isvc.toolkit.failure import ClusterError

log = logging.getLogger(__name__)

WINDOW = 600.0
REMEMBERED = 1024
WAITING = 1024
FLUSH_SECONDS = 5.0
PATIENCE = 3.0
MESSAGE_LIMIT = 1024


class _Subject(NamedTuple):
    """What makes two events the same."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    at: float


class Recorder:
    def __init__(self, client: Client, component: str, clock: Clock | None = None) -> None:
        self._client = client
        self._component = component
        self._clock = clock or SystemClock()
        self._waiting: dict[_Subject, tuple[int, str]] = {}  # how often, and the object's resourceVersion
        self._written: dict[_Subject, _Written] = {}  # oldest first
        self._task: asyncio.Task[None] | None = None

    def event(self, obj: Object, type: str, reason: str, message: str) -> None:  # noqa: A002 - as Kubernetes calls it
        """Tell `message` about an object; `type` is Normal or Warning."""
        subject = _Subject(
            obj.get("apiVersion", ""),
            obj.get("kind", ""),
            namespace_of(obj),
            name_of(obj),
            uid_of(obj),
            type,
            reason,
            message[:MESSAGE_LIMIT],
        )
        if subject not in self._waiting and len(self._waiting) >= WAITING:
            log.warning("event dropped, too many wait: %s %s/%s: %s", reason, subject.namespace, subject.name, message)
            return
        count = self._waiting.get(subject, (0, ""))[0] + 1
        self._waiting[subject] = (count, resource_version_of(obj))
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._write_waiting(), name="recorder")

    async def start(self) -> None:
        """Nothing to do: writing starts with the first event."""

    async def stop(self) -> None:
        """Write what waits, for a few seconds at most."""
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,), timeout=FLUSH_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def flush(self) -> None:
        """Wait until all events told so far are written."""
        if self._task is not None:
            await self._task

    async def _write_waiting(self) -> None:
        while self._waiting:
            subject = next(iter(self._waiting))
            count, version = self._waiting.pop(subject)
            try:
                await self._write(subject, count, version)
            except (ApiError, ClusterError) as error:
                log.debug("event not written: %s", error)
            except Exception:
                log.exception("event not written")

    async def _write(self, subject: _Subject, count: int, version: str) -> None:
        now = self._clock.monotonic()
        known = self._written.get(subject)
        if known is not None and now - known.at < WINDOW:
            known.count += count
            known.at = now
            patch = {"count": known.count, "lastTimestamp": timestamp(self._clock.now())}
            try:
                await self._client.patch(EVENTS, known.name, patch, subject.namespace or "default", patience=PATIENCE)
                return
            except NotFound:
                count = known.count  # the server forgot it; start over
        manifest = self._manifest(subject, count, version)
        self._written.pop(subject, None)
        self._written[subject] = _Written(manifest["metadata"]["name"], count, now)
        if len(self._written) > REMEMBERED:
            del self._written[next(iter(self._written))]
        await self._client.create(EVENTS, manifest, patience=PATIENCE)

    def _manifest(self, subject: _Subject, count: int, version: str) -> Object:
        moment = self._clock.now()
        involved = {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
            "resourceVersion": version,
        }
        stamp = f"{int(moment.timestamp() * 1e9):x}"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{subject.name[:230]}.{stamp}", "namespace": subject.namespace or "default"},
            "involvedObject": {field: value for field, value in involved.items() if value},
            "type": subject.type,
            "reason": subject.reason,
            "message": subject.message,
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "firstTimestamp": timestamp(moment),
            "lastTimestamp": timestamp(moment),
            "count": count,
        }

"""Events that people see in `kubectl describe`: written in the background, and counted up instead of repeated.

Recording an event never waits and never fails, so that a reconcile is not held up by its own commentary. An event that
recurs within ten minutes raises the count of the first; one that recurs before it was written costs no request at all.
Events are written as the API server has room for them, however late. What cannot be written is dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from isvc.kube.errors import ApiError, NotFound, TooManyRequests
from isvc.kube.masking import mask_text
from isvc.kube.objects import Object, name_of, namespace_of, resource_version_of, uid_of
from isvc.kube.resource import EVENTS
from isvc.kube.timestamps import timestamp
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.tasks import cancel
from isvc.wire.bounded import Bounded

log = logging.getLogger(__name__)

WINDOW = 600.0
MOST_REMEMBERED = 4096
MOST_WAITING = 100_000
WRITERS = 4
FLUSH_SECONDS = 5.0
LONGEST_FLUSH_SECONDS = 20.0  # a pod is killed 30 s after SIGTERM
PATIENCE = 3.5
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
MESSAGE_LIMIT = 1024


class EventRecorder(Protocol):
    """Records events about objects; `type` is Normal or Warning."""

    def event(self, obj: Object, type: str, reason: str, message: str) -> None: ...  # noqa: A002 - Kubernetes' word


class EventSource(EventRecorder, Protocol):
    """A recorder that can record for other components, too."""

    def for_component(self, source: str) -> EventRecorder: ...


class _Subject(NamedTuple):
    """What makes two events the same."""

    source: str
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    reason: str
    message: str


@dataclass(slots=True)
class _Waiting:
    count: int
    version: str  # of the object, when last recorded


@dataclass(slots=True)
class _Written:
    name: str
    count: int
    at: float


class Recorder:
    def __init__(
        self,
        client: Client,
        source: str,
        clock: Clock | None = None,
        *,
        on_drop: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`source` is the component that events come from; `on_drop` is called with the reason for each event lost."""
        self._client = client
        self._source = source
        self._clock = clock or SystemClock()
        self._on_drop = on_drop
        self._waiting: dict[_Subject, _Waiting] = {}  # oldest first
        self._writing: set[_Subject] = set()
        self._written: Bounded[_Subject, _Written] = Bounded(MOST_REMEMBERED)
        self._writers: set[asyncio.Task[None]] = set()
        self._stamp = 0

    def event(self, obj: Object, type: str, reason: str, message: str) -> None:  # noqa: A002 - Kubernetes' word
        self.record(self._source, obj, type, reason, message)

    def for_component(self, source: str) -> EventRecorder:
        """Returns the same recorder, for events that come from another component."""
        return _Named(self, source)

    def record(self, source: str, obj: Object, kind: str, reason: str, message: str) -> None:
        subject = _Subject(
            source,
            obj.get("apiVersion", ""),
            obj.get("kind", ""),
            namespace_of(obj),
            name_of(obj),
            uid_of(obj),
            kind,
            reason,
            mask_text(message)[:MESSAGE_LIMIT],
        )
        self._add(subject, 1, resource_version_of(obj))
        if len(self._writers) < WRITERS:
            writer = asyncio.get_running_loop().create_task(self._write_waiting(), name="event writer")
            self._writers.add(writer)
            writer.add_done_callback(self._writers.discard)

    async def start(self) -> None:
        """Does nothing: writing starts with the first event."""

    async def stop(self) -> None:
        """Writes what waits, for as long as that gets on.

        Who has released the lease may not act any more, but may still say what it did.
        """
        self._client = self._client.without_fence()
        began, writers, left = self._clock.monotonic(), list(self._writers), len(self._waiting) + 1
        while writers and len(self._waiting) < left and self._clock.monotonic() - began < LONGEST_FLUSH_SECONDS:
            left = len(self._waiting)
            _, unfinished = await asyncio.wait(writers, timeout=FLUSH_SECONDS)
            writers = list(unfinished)
        await cancel(*writers)
        for subject in self._waiting:
            self._drop(subject, "shutdown")
        self._waiting.clear()

    async def flush(self) -> None:
        """Waits until all events recorded so far are written."""
        while self._writers:
            await asyncio.wait(self._writers)

    def _add(self, subject: _Subject, count: int, version: str) -> None:
        known = self._waiting.get(subject)
        if known is not None:
            known.count, known.version = known.count + count, version
        elif len(self._waiting) < MOST_WAITING:
            self._waiting[subject] = _Waiting(count, version)
        else:
            self._drop(subject, "queue_full")

    def _drop(self, subject: _Subject, reason: str) -> None:
        place = f"{subject.kind} {subject.namespace}/{subject.name}"
        log.debug("event dropped (%s): %s of %s: %s", reason, subject.reason, place, subject.message)
        self._on_drop(reason)

    async def _write_waiting(self) -> None:
        """Writes until nothing waits that no other writer is at; pauses when the API server is away."""
        pause = FIRST_PAUSE
        while (subject := next((each for each in self._waiting if each not in self._writing), None)) is not None:
            if await self._attempt(subject):
                pause = FIRST_PAUSE
            else:
                await self._clock.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - spreads load
                pause = min(pause * 2, LONGEST_PAUSE)

    async def _attempt(self, subject: _Subject) -> bool:
        """Writes what waits about the subject; False if it has to wait on."""
        waiting = self._waiting.pop(subject)
        self._writing.add(subject)
        settled = False
        try:
            await self._write(subject, waiting)
            settled = True
        except ClusterError:
            pass
        except ApiError as error:
            settled = error.status_code < 500 and not isinstance(error, TooManyRequests)
            if settled:
                self._drop(subject, "refused")
        except Exception:
            log.exception("an event was not written")
            settled = True
            self._drop(subject, "failed")
        finally:
            self._writing.discard(subject)
            if not settled:
                self._add(subject, waiting.count, waiting.version)
        return settled

    async def _write(self, subject: _Subject, waiting: _Waiting) -> None:
        now, count = self._clock.monotonic(), waiting.count
        known = self._written.get(subject)
        if known is not None and now - known.at < WINDOW:
            count += known.count
            patch = {"count": count, "lastTimestamp": timestamp(self._clock.now())}
            try:
                await self._client.patch(EVENTS, known.name, patch, subject.namespace or "default", patience=PATIENCE)
                known.count, known.at = count, now
                return
            except NotFound:
                pass  # the server forgot it; start over
        manifest = self._manifest(subject, count, waiting.version)
        await self._client.create(EVENTS, manifest, patience=PATIENCE)
        self._written[subject] = _Written(manifest["metadata"]["name"], count, now)

    def _manifest(self, subject: _Subject, count: int, version: str) -> Object:
        moment = self._clock.now()
        self._stamp = max(self._stamp + 1, int(moment.timestamp() * 1e9))  # no two events of an object share a name
        involved = {
            "apiVersion": subject.api_version,
            "kind": subject.kind,
            "namespace": subject.namespace,
            "name": subject.name,
            "uid": subject.uid,
            "resourceVersion": version,
        }
        name = f"{subject.name[:230]}.{self._stamp:x}"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": subject.namespace or "default"},
            "involvedObject": {field: value for field, value in involved.items() if value},
            "type": subject.type,
            "reason": subject.reason,
            "message": subject.message,
            "source": {"component": subject.source},
            "reportingComponent": subject.source,
            "firstTimestamp": timestamp(moment),
            "lastTimestamp": timestamp(moment),
            "count": count,
        }


@dataclass(frozen=True, slots=True)
class _Named:
    recorder: Recorder
    source: str

    def event(self, obj: Object, type: str, reason: str, message: str) -> None:  # noqa: A002 - Kubernetes' word
        self.recorder.record(self.source, obj, type, reason, message)

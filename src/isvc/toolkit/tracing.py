"""Traces of reconciles for OpenTelemetry: a span for each, and below it one for each request to the API server.

They go to a collector as JSON over HTTP, which every collector takes. The SDK and its exporter would bring several
packages and a thread, for spans that are complete when they are made. The trace of a reconcile has the id that is
called reconcileID in the log.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import orjson

from isvc.kube.objects import Object
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.reconciling import Reconciling
from isvc.toolkit.tasks import cancel
from isvc.wire.failures import message_of

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

PERIOD: Final = 5.0  # seconds between two batches
BATCH: Final = 512  # reconciles that are worth sending at once
MOST: Final = 4096  # reconciles that wait; more are dropped
DEADLINE: Final = 10.0
_INTERNAL, _CLIENT = 1, 3  # kinds of spans
_ERROR: Final = {"code": 2}


@dataclass(frozen=True, slots=True)
class Collector:
    """Where traces go, and as whose."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    service: str = ""

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Collector | None:
        """Returns what OpenTelemetry's variables say; None where they name no endpoint, or switch traces off."""
        url = environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
        if not url and (base := environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")):
            url = base.rstrip("/") + "/v1/traces"
        is_off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
        if not url or is_off or environment.get("OTEL_TRACES_EXPORTER") == "none":
            return None
        given = environment.get("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or environment.get(
            "OTEL_EXPORTER_OTLP_HEADERS", ""
        )
        pairs = (each.partition("=") for each in given.split(",") if "=" in each)
        headers = {name.strip(): unquote(value.strip()) for name, _, value in pairs}
        return cls(url, headers, environment.get("OTEL_SERVICE_NAME", ""))


class Tracer:
    """Collects spans and sends them. A Service of the manager; a collector that does not answer holds nothing up."""

    def __init__(self, collector: Collector, program: str) -> None:
        self._collector, self._service = collector, collector.service or program
        self._clock = SystemClock()
        self._spans: list[Object] = []
        self._waiting = 0
        self._due = asyncio.Event()
        self._session: aiohttp.ClientSession | None = None
        self._task: asyncio.Task[None] | None = None
        self._problem = ""

    async def start(self) -> None:
        import aiohttp  # of no use to those without a collector

        timeout = aiohttp.ClientTimeout(total=DEADLINE)
        self._session = aiohttp.ClientSession(headers=self._collector.headers, timeout=timeout)
        self._task = asyncio.create_task(self._run(), name="traces")
        log.info("sending traces to %s", self._collector.url)

    async def stop(self) -> None:
        await cancel(self._task)
        if self._session is not None:
            await self._send()
            await self._session.close()

    def record(self, reconciling: Reconciling, seconds: float, outcome: str) -> None:
        """Takes note of a reconcile that has just ended."""
        if self._waiting >= MOST:
            return
        self._waiting += 1
        self._spans += spans_of(reconciling, self._clock.now().timestamp(), seconds, outcome)
        if self._waiting >= BATCH:
            self._due.set()

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(PERIOD):
                    await self._due.wait()
            except TimeoutError:
                pass
            self._due.clear()
            await self._send()

    async def _send(self) -> None:
        spans, self._spans, self._waiting = self._spans, [], 0
        if not spans or self._session is None:
            return
        body = orjson.dumps(export_request(self._service, spans))
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(self._collector.url, data=body, headers=headers) as answer:
                problem = f"it answers {answer.status}" if answer.status >= 300 else ""
        except (OSError, TimeoutError) as error:  # aiohttp's errors of connections among them
            problem = message_of(error)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem and problem != self._problem:  # once, not with every batch
            log.warning("traces cannot be sent to %s: %s", self._collector.url, problem)
        self._problem = problem


def spans_of(reconciling: Reconciling, ended: float, seconds: float, outcome: str) -> list[Object]:
    """Returns the spans of a reconcile that ended then and took so long: its own, and those of its requests."""
    trace, root = reconciling.id.replace("-", ""), secrets.token_hex(8)
    given = {
        "controller": reconciling.controller,
        "k8s.namespace.name": reconciling.key.namespace,
        "k8s.object.name": reconciling.key.name,
        "result": outcome,
    }
    name = f"reconcile {reconciling.controller}"
    spans = [_span(trace, root, name, _INTERNAL, (ended - seconds, ended), given, is_error=outcome == "error")]
    for answer in reconciling.answers or ():
        path, at = answer.target.partition("?")[0], answer.ended
        said = {"http.request.method": answer.method, "url.path": path, "http.response.status_code": answer.status}
        span = _span(
            trace,
            secrets.token_hex(8),
            f"{answer.method} {path.rpartition('/')[0]}",
            _CLIENT,
            (at - answer.seconds, at),
            said,
            is_error=answer.status >= 400,
        )
        spans.append({**span, "parentSpanId": root})
    return spans


def _span(
    trace: str, span: str, name: str, kind: int, when: tuple[float, float], given: Mapping[str, Any], *, is_error: bool
) -> Object:
    began, ended = (str(int(moment * 1e9)) for moment in when)
    made: Object = {
        "traceId": trace,
        "spanId": span,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": began,
        "endTimeUnixNano": ended,
        "attributes": _attributes(given),
    }
    return {**made, "status": _ERROR} if is_error else made


def export_request(service: str, spans: Sequence[Object]) -> Object:
    """Returns the body of a request to a collector, as OTLP has it in JSON."""
    scope = {"scope": {"name": "isvc"}, "spans": list(spans)}
    resource = {"attributes": _attributes({"service.name": service})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}


def _attributes(given: Mapping[str, Any]) -> list[Object]:
    return [
        {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}
        for key, value in given.items()
        if value != ""
    ]

"""What became of payloads, for Prometheus, on a port of its own: those of the model server belong to it."""

from __future__ import annotations

import logging

from isvc.pods.agent.logger import Ledger
from isvc.wire.http1.connection import Connection, Handler
from isvc.wire.http1.message import Request, Response
from isvc.wire.http1.server import HttpServer

log = logging.getLogger("isvc.pods.agent")

_TEXT = "text/plain; version=0.0.4; charset=utf-8"
_IDLE_SECONDS = 180.0


def text(ledger: Ledger) -> str:
    return (
        "# HELP isvc_agent_events_total Events of payload logging, by what became of them.\n"
        "# TYPE isvc_agent_events_total counter\n"
        f'isvc_agent_events_total{{outcome="delivered"}} {ledger.delivered}\n'
        f'isvc_agent_events_total{{outcome="failed"}} {ledger.failed}\n'
        f'isvc_agent_events_total{{outcome="dropped"}} {ledger.dropped}\n'
        "# HELP isvc_agent_payload_bytes Bytes of payloads that are held until they are delivered.\n"
        "# TYPE isvc_agent_payload_bytes gauge\n"
        f"isvc_agent_payload_bytes {ledger.held}\n"
    )


class _Metrics(Handler[Request]):
    request_type = Request

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def handle(self, request: Request, connection: Connection[Request]) -> Response:
        if request.path != "/metrics":
            return Response(b"there is /metrics here, and nothing else\n", 404, "text/plain")
        return Response(text(self._ledger).encode(), 200, _TEXT)

    def refusal(self, status: int, message: str) -> Response:
        return Response(f"{message}\n".encode(), status, "text/plain")

    def failure(self, request: Request, error: Exception) -> Response:
        raise error


async def serve_metrics(ledger: Ledger, host: str, port: int) -> None:
    """A port that is taken costs the metrics, and nothing else."""
    try:
        await HttpServer(_Metrics(ledger), idle_seconds=_IDLE_SECONDS).listen(host, port)
    except OSError as error:
        log.warning("no metrics on port %d: %s", port, error.strerror or error)

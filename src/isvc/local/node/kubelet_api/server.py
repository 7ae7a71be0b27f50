"""What the API server asks of a node, over TLS and with its token, on the paths of a kubelet.

Logs of containers, commands beside them (`exec`), their input and output (`attach`), connections to their ports,
and what they use (`stats/summary`).
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs

import orjson

from isvc.kube.objects import Object
from isvc.local.node.containers.container import Container, NotRunning
from isvc.local.node.pods.pod import PodWorker
from isvc.local.node.processes.logs import LogOptions, read, read_plain
from isvc.local.node.processes.process import CannotStart, Exit
from isvc.local.node.streams import command_streams, port_forward
from isvc.local.node.streams.command_streams import Streams, UpgradeRefused, Wanted
from isvc.local.node.streams.port_forward import CannotConnect
from isvc.wire.http1.connection import Connection, Handler
from isvc.wire.http1.message import Request, Response, Stream, Upgrade, Writer
from isvc.wire.http1.server import HttpServer
from isvc.wire.x509.files import CertificateFiles

log = logging.getLogger("isvc.node")

_TEXT = "text/plain"
_IDLE_SECONDS = 600.0
_STOP_SECONDS = 2.0

Find = Callable[[str, str], PodWorker | None]
WrittenLog = Callable[[str, str, str, bool], Path | None]
"""The file that a container wrote, by namespace, pod and name: that of the last run, or if True of the one before."""
Query = dict[str, list[str]]


SUCCESS: Final[Object] = {"metadata": {}, "status": "Success"}


class _Refused(Exception):
    """Becomes a response with this status and message."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Kubelet(Handler[Request]):
    request_type = Request

    def __init__(
        self,
        find: Find,
        written_log: WrittenLog,
        summary: Callable[[], Awaitable[Object]],
        pki: Path,
        own_logs: Mapping[tuple[str, str], Path] | None = None,
    ) -> None:
        self._own_logs = own_logs or {}
        self._find = find
        self._written_log = written_log
        self._summary = summary
        self._pki = pki
        self._token = ""
        self._http: HttpServer[Request] | None = None
        self.port = 0

    async def start(self) -> None:
        self._token = (self._pki / "kubelet.token").read_text().strip()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        certificate = CertificateFiles(context, self._pki / "tls.crt", self._pki / "tls.key")
        certificate.load()
        self._http = HttpServer(self, idle_seconds=_IDLE_SECONDS, tls=certificate)
        _, self.port = await self._http.listen("127.0.0.1", 0)

    async def stop(self) -> None:
        if self._http is not None:
            await self._http.stop(_STOP_SECONDS)

    def refusal(self, status: int, message: str) -> Response:
        return Response(message.encode(), status, _TEXT)

    def failure(self, request: Request, error: Exception) -> Response:
        if isinstance(error, _Refused):
            return Response(str(error).encode(), error.status, _TEXT)
        if isinstance(error, UpgradeRefused | NotRunning):
            return Response(str(error).encode(), 400, _TEXT)
        log.error("%s %s failed", request.method, request.path, exc_info=error)
        return Response(b"the node failed: see its log", 500, _TEXT)

    def handle(self, request: Request, connection: Connection[Request]) -> Awaitable[Response]:
        return self._answer(request)

    async def _answer(self, request: Request) -> Response:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            raise _Refused("Unauthorized", 401)
        query = parse_qs(request.query_string)
        match request.path.split("/")[1:]:
            case ["containerLogs", namespace, pod, name]:
                return self._logs(namespace, pod, name, query)
            case ["exec", namespace, pod, name]:
                return self._exec(request, self._container(namespace, pod, name), query)
            case ["attach", namespace, pod, name]:
                return self._attach(request, self._container(namespace, pod, name), query)
            case ["portForward", namespace, pod]:
                return self._forward(request, self._worker(namespace, pod), query)
            case ["connect", namespace, pod]:
                return await self._connect(self._worker(namespace, pod), query)
            case ["stats", "summary"]:
                return Response(orjson.dumps(await self._summary()))
        raise _Refused("404 page not found", 404)

    def _worker(self, namespace: str, pod: str) -> PodWorker:
        if (worker := self._find(namespace, pod)) is None:
            raise _Refused(f"pod {pod} is not running on this node")
        return worker

    def _container(self, namespace: str, pod: str, name: str) -> Container:
        worker = self._find(namespace, pod)
        container = worker.container(name) if worker else None
        if container is None:
            raise _Refused(f'container "{name}" in pod is waiting to start: ContainerCreating')
        return container

    def _exec(self, request: Request, container: Container, query: Query) -> Response:
        wanted, words = _wanted_streams(query), query.get("command", [])
        if not words:
            raise _Refused("a command to execute must be given")
        container.running_plan()

        async def serve(streams: Streams) -> Object:
            try:
                return exit_status(await container.execute(words, streams, tty=wanted.tty))
            except (CannotStart, NotRunning) as error:
                return internal_error(f"error executing command in container: {error}")

        return command_streams.upgrade(request, wanted, serve)

    def _attach(self, request: Request, container: Container, query: Query) -> Response:
        container.running_plan()

        async def serve(streams: Streams) -> Object:
            await container.attach(streams)
            return SUCCESS

        return command_streams.upgrade(request, _wanted_streams(query), serve)

    def _forward(self, request: Request, worker: PodWorker, query: Query) -> Response:
        return port_forward.upgrade(request, _ports(query), lambda port: _connect_to(worker, port))

    async def _connect(self, worker: PodWorker, query: Query) -> Response:
        """Opens one connection to one port, for the API server's own requests to a pod."""
        try:
            reader, writer = await _connect_to(worker, next(iter(_ports(query)), 0))
        except CannotConnect as error:
            raise _Refused(str(error), 503) from None
        return Upgrade({"Upgrade": "tcp"}, lambda tunnel: tunnel.relay(reader, writer))

    def _logs(self, namespace: str, pod: str, name: str, query: Query) -> Response:
        if (own := self._own_logs.get((namespace, pod))) is not None:
            return _stream(read_plain(own, _log_options(query)))
        worker, live = self._find(namespace, pod), None
        container, path = worker.container(name) if worker else None, None
        previous = query.get("previous") == ["true"]
        if container is not None and not previous:
            live, path = container.log, container.log_path(container.state.restarts)
            if live is not None and not path.exists():
                path = live.path  # between two starts: the one that ended last
        elif container is not None:
            path = container.log_path(container.state.restarts - 1)
        else:
            path = self._written_log(namespace, pod, name, previous)
        if path is None or not path.exists():
            if previous:
                raise _Refused(f'previous terminated container "{name}" not found')
            waiting = (container.state.waiting if container else None) or {}
            reason = waiting.get("reason", "ContainerCreating")
            raise _Refused(f'container "{name}" in pod is waiting to start: {reason}')

        return _stream(read(path, _log_options(query), live))


def _stream(chunks: AsyncIterator[bytes]) -> Response:
    async def produce(writer: Writer) -> None:
        async for chunk in chunks:
            writer.write(chunk)
            await writer.drain()
            if writer.gone.done():
                return

    return Stream(produce, _TEXT)


async def _connect_to(worker: PodWorker, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    local = worker.local_ports.get(port)
    if local is None:
        known = ", ".join(map(str, worker.local_ports)) or "none"
        raise CannotConnect(f"the pod's containers declare no port {port} (they declare: {known})")
    try:
        return await asyncio.open_connection("127.0.0.1", local)
    except OSError as error:
        raise CannotConnect(f"nothing answers at port {port} of the pod (local port {local}): {error}") from None


def _ports(query: Query) -> list[int]:
    return [int(port) for port in query.get("port", []) if port.isascii() and port.isdigit()]


def _is_set(query: Query, name: str) -> bool:
    return query.get(name, [""])[0] in ("1", "true")


def _wanted_streams(query: Query) -> Wanted:
    stdin, stdout, stderr, tty = (_is_set(query, name) for name in ("input", "output", "error", "tty"))
    if not (stdin or stdout or stderr):
        raise _Refused("you must specify at least 1 of stdin, stdout, stderr")
    return Wanted(stdin, stdout, stderr, tty)


def _log_options(query: Query) -> LogOptions:
    given = {name: values[0] for name, values in query.items()}
    since = None
    if seconds := given.get("sinceSeconds"):
        since = datetime.now(UTC) - timedelta(seconds=int(seconds))
    elif moment := given.get("sinceTime"):
        since = datetime.fromisoformat(moment)
    return LogOptions(
        follow=_is_set(query, "follow"),
        timestamps=_is_set(query, "timestamps"),
        tail_lines=int(given["tailLines"]) if given.get("tailLines") else None,
        since=since,
        limit_bytes=int(given["limitBytes"]) if given.get("limitBytes") else None,
    )


def exit_status(ended: Exit) -> Object:
    """Says how a command ended, as the Status with which `kubectl exec` ends."""
    if ended.code == 0:
        return SUCCESS
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {ended.code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(ended.code)}]},
    }


def internal_error(message: str) -> Object:
    details = {"causes": [{"message": message}]}
    text = f"Internal error occurred: {message}"
    return {
        "metadata": {},
        "status": "Failure",
        "message": text,
        "reason": "InternalError",
        "details": details,
        "code": 500,
    }

"""What the API server asks of a node: its containers' logs, and to get into them; over TLS and with its token."""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from aiohttp import web

from isvc.kube.objects import Object, annotations_of, dig
from isvc.local.node.logs import LogOptions, read
from isvc.local.node.pod import PodWorker
from isvc.local.node.ports import PORTS_ANNOTATION

Find = Callable[[str, str], PodWorker | None]


class Kubelet:
    def __init__(self, find: Find, pki: Path) -> None:
        self._find = find
        self._pki = pki
        self._token = ""
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self) -> None:
        self._token = (self._pki / "kubelet.token").read_text().strip()
        app = web.Application()
        app.router.add_get("/containerLogs/{namespace}/{pod}/{container}", self._logs)
        for name in ("exec", "attach", "portForward"):
            app.router.add_post(f"/{name}/{{namespace}}/{{pod}}", self._connect)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._pki / "kubelet.crt", self._pki / "kubelet.key")
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    def _is_api_server(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(), self._token.encode())

    async def _connect(self, request: web.Request) -> web.Response:
        """There is no need to get into a process of this machine; says where it is."""
        if not self._is_api_server(request):
            return web.Response(status=401, text="Unauthorized")
        worker = self._find(request.match_info["namespace"], request.match_info["pod"])
        where = whereabouts(worker.pod) if worker else "not started yet"
        command = request.path.split("/")[1].lower()
        text = f"{command} is not supported: pods are processes of this machine (this one: {where})"
        return web.Response(status=400, text=text)

    async def _logs(self, request: web.Request) -> web.StreamResponse:
        if not self._is_api_server(request):
            return web.Response(status=401, text="Unauthorized")
        name = request.match_info["container"]
        worker = self._find(request.match_info["namespace"], request.match_info["pod"])
        container = worker.container(name) if worker else None
        if container is None:
            return web.Response(status=400, text=f'container "{name}" in pod is waiting to start: ContainerCreating')
        live, path = container.log, container.log_path(container.state.restarts)
        if request.query.get("previous") == "true":
            live, path = None, container.log_path(container.state.restarts - 1)
            if not path.exists():
                return web.Response(status=400, text=f'previous terminated container "{name}" not found')
        if live is not None and not path.exists():
            path = live.path  # between two starts: the one that ended last
        if not path.exists():
            reason = (container.state.waiting or {}).get("reason", "ContainerCreating")
            return web.Response(status=400, text=f'container "{name}" in pod is waiting to start: {reason}')
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        async for chunk in read(path, _options(request), live):
            await response.write(chunk)
        await response.write_eof()
        return response


def whereabouts(pod: Object) -> str:
    """The processes and ports of a pod, as its status says."""
    statuses = dig(pod, "status", "containerStatuses") or ()
    running = [f"{each['name']} {each['containerID']}" for each in statuses if each.get("containerID")]
    ports = annotations_of(pod).get(PORTS_ANNOTATION, "")
    return ", ".join([*running, *([f"ports {ports}"] if ports else [])]) or "not started yet"


def _options(request: web.Request) -> LogOptions:
    query = request.query
    since = None
    if seconds := query.get("sinceSeconds"):
        since = datetime.now(UTC) - timedelta(seconds=int(seconds))
    elif moment := query.get("sinceTime"):
        since = datetime.fromisoformat(moment)
    return LogOptions(
        follow=query.get("follow") in ("true", "1"),
        timestamps=query.get("timestamps") in ("true", "1"),
        tail_lines=int(query["tailLines"]) if query.get("tailLines") else None,
        since=since,
        limit_bytes=int(query["limitBytes"]) if query.get("limitBytes") else None,
    )

"""A proxy to the API server that misbehaves on demand: cuts watches, holds them up, refuses them, fails, or is away."""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import replace

import aiohttp
from aiohttp import web
from tests.servers import Cluster

from isvc.toolkit.client import kubeconfig
from isvc.toolkit.client.kubeconfig import ClusterConfig


class FaultyProxy:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._open: set[asyncio.Transport] = set()
        self.cut_every: float | None = None
        self.lag = 0.0  # seconds by which what a watch says may be late, each by itself
        self.expire_watches = False
        self.away = False
        self.refusal = ""  # Forbidden or NotFound,
        self.refusals = math.inf  # so many times
        self.failing = 0
        self.cuts = 0
        self.lists = 0
        self.watches = 0
        self.requests = 0
        self.writes: list[str] = []

    async def __aenter__(self) -> FaultyProxy:
        self._upstream = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=False), timeout=aiohttp.ClientTimeout(total=None)
        )
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self._cutter = asyncio.create_task(self._cut_regularly())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._cutter.cancel()
        self.cut()
        await self._runner.cleanup()
        await self._upstream.close()

    @property
    def config(self) -> ClusterConfig:
        """How to reach the cluster through the proxy."""
        direct = kubeconfig.load(self._cluster.kubeconfig)
        return replace(direct, server=f"http://127.0.0.1:{self._port}", ca=b"", insecure=False)

    @property
    def streaming(self) -> bool:
        """Whether a watch is open: its head has been answered."""
        return bool(self._open)

    def cut(self) -> None:
        """Break all watches, in the middle of whatever they are saying."""
        for connection in self._open:
            connection.abort()
            self.cuts += 1

    def go_away(self) -> None:
        """Hang up on everybody, and on whoever calls."""
        self.away = True
        self.cut()

    def come_back(self) -> None:
        self.away = False

    async def _cut_regularly(self) -> None:
        while True:
            await asyncio.sleep(self.cut_every or 0.05)
            if self.cut_every:
                self.cut()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._forward(request)
        except ConnectionResetError:
            if request.transport is not None:
                request.transport.abort()
            raise web.HTTPServiceUnavailable from None

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        self.requests += 1
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.raw_path}")
        if self.away:
            raise ConnectionResetError
        if self.failing and request.method != "GET":
            self.failing -= 1
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "InternalError", "code": 500}
            return web.json_response({**status, "message": "the proxy was set to fail"}, status=500)
        if self.refusal and self.refusals:
            self.refusals -= 1
            code = {"Forbidden": 403, "NotFound": 404}[self.refusal]
            return web.json_response(
                {"kind": "Status", "status": "Failure", "reason": self.refusal, "code": code}, status=code
            )
        watching = "watch" in request.query
        if watching:
            self.watches += 1
            if self.expire_watches:
                status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410}
                return web.json_response({**status, "message": "too old resource version"}, status=410)
        elif request.method == "GET" and "limit" in request.query:
            self.lists += 1
        headers = {name: value for name, value in request.headers.items() if name.lower() != "host"}
        url = self._cluster.url + request.raw_path
        async with self._upstream.request(
            request.method, url, headers=headers, data=await request.read() or None, allow_redirects=False
        ) as answer:
            response = web.StreamResponse(status=answer.status)
            response.content_type = answer.content_type
            await response.prepare(request)
            connection = request.transport
            if connection is None or self.away:
                raise ConnectionResetError
            if watching:
                self._open.add(connection)
            try:
                async for chunk in answer.content.iter_any():
                    if watching and self.lag:
                        await asyncio.sleep(random.uniform(0, self.lag))
                    await response.write(chunk)
            finally:
                self._open.discard(connection)
        return response

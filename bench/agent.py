"""What the agent adds to a model server: latency, CPU and memory, beside a direct connection, in one run.

    python bench/agent.py [--requests 3000] [--gigabytes 1] [--kserve PROGRAM]

HTTP/1.1, gRPC, WebSockets and server-sent events go through the agent, and a large body each way; once as they are, and
once with a logger whose sink is a server of this run. `--kserve` is KServe's own agent, which is measured as well.
Latencies are medians of single requests, one after the other, taken in turns: a busy machine slows all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import uvloop
import websockets
from aiohttp import web

ANSWER = b'{"predictions":[1]}'
REQUEST = b"POST /v1/models/m:predict HTTP/1.1\r\nHost: m\r\nContent-Length: 17\r\n\r\n" + b'{"instances":[1]}'
METHOD = "/inference.GRPCInferenceService/ModelInfer"
PIECE = b"x" * (1 << 18)
ROUNDS = 5


# The model server


class Plain(asyncio.Protocol):
    """The least that answers HTTP/1.1: what the proxies add shows best beside it."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]
        self.head, self.left = b"", 0

    def data_received(self, data: bytes) -> None:
        if not self.left:
            self.head, _, data = (self.head + data).partition(b"\r\n\r\n")
            length = self.head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
            self.left = int(length or 0)
        self.left -= len(data)
        if self.left:
            return
        if b" /download/" in self.head:
            size = int(self.head.partition(b" /download/")[2].split(b" ")[0])
            asyncio.get_running_loop().create_task(self.send(size))
        else:
            self.answer(ANSWER)
        self.head = b""

    def answer(self, body: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async def send(self, size: int) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size // len(PIECE)):
            self.transport.write(PIECE)
            while self.transport.get_write_buffer_size() > 4 * len(PIECE):  # noqa: ASYNC110
                await asyncio.sleep(0)


async def backend(http: int, events: int, grpc_port: int, websocket: int, sink: int) -> None:
    async def infer(request: bytes, context: object) -> bytes:
        return request

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(int(request.query["n"])):
            await response.write(b"data: %d\n\n" % time.monotonic_ns())
            await asyncio.sleep(0.002)
        return response

    async def echo(connection: websockets.ServerConnection) -> None:
        async for message in connection:
            await connection.send(message)

    loop = asyncio.get_running_loop()
    for port in (http, sink):
        await loop.create_server(Plain, "127.0.0.1", port)
    app = web.Application()
    app.router.add_get("/events", stream)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", events).start()
    server = grpc.aio.server()
    handlers = {"ModelInfer": grpc.unary_unary_rpc_method_handler(infer)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("inference.GRPCInferenceService", handlers),))
    server.add_insecure_port(f"127.0.0.1:{grpc_port}")
    await server.start()
    async with websockets.serve(echo, "127.0.0.1", websocket, max_size=None, compression=None):
        await asyncio.Event().wait()


# What is measured


async def http(port: int, count: int) -> list[float]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times = []
    for _ in range(count):
        started = time.perf_counter()
        writer.write(REQUEST)
        await reader.readuntil(ANSWER)
        times.append(time.perf_counter() - started)
    writer.close()
    return times


async def grpc_calls(port: int, count: int) -> list[float]:
    times = []
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(METHOD)
        await call(b"x")
        for _ in range(count):
            started = time.perf_counter()
            await call(b"x" * 100)
            times.append(time.perf_counter() - started)
    return times


async def websocket_echoes(port: int, count: int) -> list[float]:
    times = []
    try:
        async with websockets.connect(f"ws://127.0.0.1:{port}/", compression=None) as connection:
            for _ in range(count):
                started = time.perf_counter()
                await connection.send(b"x" * 100)
                await connection.recv()
                times.append(time.perf_counter() - started)
    except websockets.InvalidStatus:  # KServe's agent with a logger
        return [math.nan]
    return times


async def sse_delays(port: int, count: int) -> list[float]:
    """From the moment that the server wrote an event to the one that the client has it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /events?n={count // 4} HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n".encode())
    times = []
    while line := await reader.readline():
        if line.startswith(b"data: "):
            times.append((time.monotonic_ns() - int(line[6:])) / 1e9)
    return times


def transfer(port: int, size: int, *, up: bool) -> float:
    """Seconds for a body of that size."""
    started = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        if up:
            connection.sendall(f"POST /upload HTTP/1.1\r\nHost: m\r\nContent-Length: {size}\r\n\r\n".encode())
            for _ in range(size // len(PIECE)):
                connection.sendall(PIECE)
            assert connection.recv(100).startswith(b"HTTP/1.1 200")
        else:
            connection.sendall(f"GET /download/{size} HTTP/1.1\r\nHost: m\r\n\r\n".encode())
            left, buffer = size, bytearray(1 << 20)
            while left > 0:
                left -= connection.recv_into(buffer)
    return time.perf_counter() - started


# Programs


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    probe = json.dumps({"tcpSocket": {"port": port, "host": "127.0.0.1"}})
    env = {**os.environ, "SERVING_READINESS_PROBE": probe}
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                assert process.poll() is None, command
                time.sleep(0.02)
        yield process.pid
    finally:
        process.kill()
        process.wait()


def usage(pid: int) -> tuple[float, int]:
    """CPU seconds so far, and the most memory in MiB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(peak.split()[1]) // 1024


class Way:
    """A way to the model server: directly, or through an agent, which is started for each measurement."""

    def __init__(self, name: str, command: list[str]) -> None:
        self.name, self.command = name, command
        self.times: dict[str, list[float]] = {}
        self.cpu: dict[str, float] = {}
        self.idle = self.most = 0

    def measure(self, what: str, port: int, run: Callable[[int], list[float]]) -> None:
        if not self.command:
            self.times.setdefault(what, []).extend(run(port))
            return
        [own] = free_ports(1)
        with running([*self.command, f"--port={own}", f"--component-port={port}"], own) as pid:
            before, self.idle = usage(pid)
            self.times.setdefault(what, []).extend(run(own))
            after, peak = usage(pid)
            self.cpu[what] = self.cpu.get(what, 0.0) + after - before
            self.most = max(self.most, peak)


def report(ways: list[Way]) -> None:
    direct = ways[0]
    print(f"{'median, added by the agent, its CPU':36}" + "".join(f"{way.name:>30}" for way in ways))
    for what, own in direct.times.items():
        row = f"{what:36}"
        for way in ways:
            median, cpu = statistics.median(way.times[what]), way.cpu.get(what, 0.0) / len(way.times[what])
            unit, name, digits = (1.0, "s ", 2) if "GiB" in what else (1e6, "µs", 0)
            row += f"{median * unit:>9.{digits}f} {name}"
            added = (median - statistics.median(own)) * unit
            row += f"{added:>+9.{digits}f}{cpu * unit:>9.{digits}f}" if way.command else " " * 18
        print(row)
    for what in ("idle", "most"):
        texts = [f"{getattr(way, what)} MiB" if way.command else "" for way in ways]
        print(f"{what + ' memory':36}" + "".join(f"{text:>30}" for text in texts))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--requests", type=int, default=3000)
    options.add_argument("--gigabytes", type=float, default=1)
    options.add_argument("--kserve", help="KServe's agent, as built from cmd/agent")
    options.add_argument("--backend", nargs=5, type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.backend:
        uvloop.run(backend(*given.backend))
        return
    ports = free_ports(5)
    log = f"--log-url=http://127.0.0.1:{ports[4]}/"
    ours = [sys.executable, "-m", "isvc.pods.agent", "--host=127.0.0.1", "--metrics-port=0"]
    ways = [Way("direct", []), Way("agent", ours), Way("agent with a logger", [*ours, log])]
    if given.kserve:
        ways += [Way("KServe's agent", [given.kserve]), Way("KServe's with a logger", [given.kserve, log])]
    count, size = given.requests // ROUNDS, int(given.gigabytes * (1 << 30)) // len(PIECE) * len(PIECE)
    single = {
        "HTTP/1.1 prediction": http,
        "server-sent event": sse_delays,
        "gRPC call": grpc_calls,
        "WebSocket message": websocket_echoes,
    }
    with running([sys.executable, __file__, "--backend", *map(str, ports)], ports[3]):
        for _ in range(ROUNDS):
            for port, (what, run) in zip(ports, single.items(), strict=False):
                for way in ways:
                    way.measure(what, port, lambda port, run=run: uvloop.run(run(port, count)))
        for up in (True, False):
            for way in ways:
                what = f"{given.gigabytes:g} GiB {'up' if up else 'down'}"
                way.measure(what, ports[0], lambda port, up=up: [transfer(port, size, up=up)])
        report(ways)


if __name__ == "__main__":
    main()

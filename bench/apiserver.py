"""Speed of the embedded API server beside kube-apiserver with etcd: the same load, one after the other, in one run.

Both are asked over TLS with keep-alive connections by one separate process: creates of 2 KiB ConfigMaps while a watch
looks on, then gets of them. Reported: start to ready, requests a second, how long after the answer the watch reported
each create, and the memory that 2,000 objects take.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests import servers  # noqa: E402

NAMESPACE = "bench"
PAYLOAD = 2048


@dataclass
class Result:
    ready: float = 0.0
    creates: float = 0.0
    create_p99: float = 0.0
    gets: float = 0.0
    get_p99: float = 0.0
    watch: list[float] = field(default_factory=list)
    memory: float = 0.0
    create_cpu: float = 0.0  # µs of the server's CPU per request
    get_cpu: float = 0.0


class Connection(asyncio.Protocol):
    """One keep-alive connection that sends the next request when the last is answered."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._answer: asyncio.Future[int] | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def ask(self, request: bytes) -> asyncio.Future[int]:
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self._buffer[:end]).lower()
        at = head.find(b"content-length:")
        if at >= 0:
            whole = len(self._buffer) >= end + 4 + int(head[at + 15 :].split(b"\r\n", 1)[0])
        else:
            whole = self._buffer.endswith(b"\r\n0\r\n\r\n")  # chunked, as Go sends what is over 2 KiB
        if whole and self._answer:
            self._buffer.clear()
            self._answer.set_result(int(head[9:12]))

    def close(self) -> None:
        self._transport.close()


def head(method: str, path: str, host: str, token: str, length: int = 0) -> str:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nAccept: application/json\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    )


def config_map(name: str) -> bytes:
    text = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "bench"}}}
    return json.dumps({**text, "data": {f"key-{n}": "x" * (PAYLOAD // 16 - 12) for n in range(16)}}).encode()


class Load:
    """Everything the client process does to one server."""

    def __init__(self, url: str, token: str, connections: int, mark: Callable[[str], None]) -> None:
        """`mark` is called when a phase begins or ends."""
        self._mark = mark
        self._host = url.removeprefix("https://")
        self._token = token
        self._count = connections
        self._tls = ssl._create_unverified_context()
        self.sent: dict[str, float] = {}
        self.answered: dict[str, float] = {}
        self.seen: dict[str, float] = {}
        self._expected = asyncio.Event()

    async def run(self, objects: int, gets: int) -> Result:
        result = Result()
        first = await self._connect()
        body = json.dumps({"metadata": {"name": NAMESPACE}}).encode()
        await first.ask(head("POST", "/api/v1/namespaces", self._host, self._token, len(body)).encode() + body)
        first.close()
        connections = [await self._connect() for _ in range(self._count)]
        watching = asyncio.create_task(self._watch())
        await asyncio.sleep(0.5)
        self._mark("creating")
        took, times = await self._spread(connections, [f"object-{n}" for n in range(objects)], self._create)
        result.creates, result.create_p99 = objects / took, percentile(times, 99)
        await self._all_seen(objects)
        watching.cancel()
        self._mark("getting")
        result.watch = [self.seen[name] - self.answered[name] for name in self.answered]
        names = [f"object-{n % objects}" for n in range(gets)]
        took, times = await self._spread(connections, names, self._get)
        result.gets, result.get_p99 = gets / took, percentile(times, 99)
        self._mark("done")
        return result

    async def _all_seen(self, objects: int) -> None:
        while len(self.seen) < objects:
            self._expected.clear()
            await asyncio.wait_for(self._expected.wait(), 30)

    async def _connect(self) -> Connection:
        host, _, port = self._host.partition(":")
        _, protocol = await asyncio.get_running_loop().create_connection(Connection, host, int(port), ssl=self._tls)
        return protocol

    async def _spread(self, connections: list[Connection], names: list[str], do: Any) -> tuple[float, list[float]]:
        waiting = iter(names)
        times: list[float] = []

        async def work(connection: Connection) -> None:
            for name in waiting:
                began = time.perf_counter()
                await do(connection, name)
                times.append(time.perf_counter() - began)

        began = time.perf_counter()
        await asyncio.gather(*(work(connection) for connection in connections))
        return time.perf_counter() - began, times

    async def _create(self, connection: Connection, name: str) -> None:
        body = config_map(name)
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        self.sent[name] = time.perf_counter()
        status = await connection.ask(head("POST", path, self._host, self._token, len(body)).encode() + body)
        self.answered[name] = time.perf_counter()
        assert status == 201, status

    async def _get(self, connection: Connection, name: str) -> None:
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{name}"
        status = await connection.ask(head("GET", path, self._host, self._token).encode())
        assert status == 200, status

    async def _watch(self) -> None:
        host, _, port = self._host.partition(":")
        reader, writer = await asyncio.open_connection(host, int(port), ssl=self._tls, limit=1 << 24)
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps?watch=true&resourceVersion=0"
        writer.write(head("GET", path, self._host, self._token).encode())
        rest = b""
        while data := await reader.read(1 << 20):
            now = time.perf_counter()
            rest += data
            *lines, rest = rest.split(b"\n")
            for line in lines:
                at = line.find(b'"name":"object-')
                if at >= 0:
                    self.seen.setdefault(line[at + 8 : line.index(b'"', at + 8)].decode(), now)
            self._expected.set()


def percentile(values: list[float], share: int) -> float:
    return statistics.quantiles(values, n=100)[share - 1] * 1000


def memory(pids: list[int]) -> float:
    """Resident MiB."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                total += int(line.split()[1])
    return total / 1024


def cpu(pids: list[int]) -> float:
    """Seconds that the processes have used."""
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def client(url: str, token: str, connections: int, objects: int, gets: int, pipe: Any) -> None:
    import uvloop

    pipe.send(uvloop.run(Load(url, token, connections, pipe.send).run(objects, gets)))


def measure(kind: str, options: argparse.Namespace) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        cluster = servers.start(kind, Path(folder))
        ready = time.perf_counter() - began
        try:
            ours, theirs = multiprocessing.Pipe()
            arguments = (cluster.url, cluster.token, options.connections, options.objects, options.gets, theirs)
            process = multiprocessing.Process(target=client, args=arguments)
            process.start()
            pids = [each.pid for each in cluster.processes]
            used = {}
            while isinstance(message := ours.recv(), str):
                used[message] = cpu(pids)
            process.join()
            result: Result = message
            result.create_cpu = (used["getting"] - used["creating"]) / options.objects * 1e6
            result.get_cpu = (used["done"] - used["getting"]) / options.gets * 1e6
            result.ready = ready
            result.memory = memory(pids)
            return result
        finally:
            cluster.stop()


def report(results: dict[str, Result]) -> None:
    rows = [
        ("start to ready, s", lambda r: f"{r.ready:.2f}", "< 0.5"),
        ("creates a second", lambda r: f"{r.creates:,.0f}", "≥ 1,500"),
        ("  slowest 1%, ms", lambda r: f"{r.create_p99:.1f}", ""),
        ("  server CPU each, µs", lambda r: f"{r.create_cpu:.0f}", ""),
        ("watch event after the answer, median, ms", lambda r: f"{statistics.median(r.watch) * 1000:.1f}", ""),
        ("  slowest 1%, ms", lambda r: f"{percentile(r.watch, 99):.1f}", "≤ 20"),
        ("gets a second", lambda r: f"{r.gets:,.0f}", "≥ 5,000"),
        ("  slowest 1%, ms", lambda r: f"{r.get_p99:.1f}", ""),
        ("  server CPU each, µs", lambda r: f"{r.get_cpu:.0f}", ""),
        ("memory with all objects, MiB", lambda r: f"{r.memory:.0f}", "< 80"),
    ]
    print(f"{'':44}" + "".join(f"{name:>16}" for name in results) + f"{'target':>12}")
    for title, value, target in rows:
        print(f"{title:44}" + "".join(f"{value(result):>16}" for result in results.values()) + f"{target:>12}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--objects", type=int, default=2000)
    parser.add_argument("--gets", type=int, default=20000)
    parser.add_argument("--only", choices=("embedded", "kube-apiserver"))
    options = parser.parse_args()
    kinds = [options.only] if options.only else ["embedded", "kube-apiserver"]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {options.connections} connections", flush=True)
    report({kind: measure(kind, options) for kind in kinds})


if __name__ == "__main__":
    main()

"""What the gateway of `isvc up` carries, in HTTP/1.1 and in gRPC, beside nginx from Debian's packages.

    python bench/gateway.py [--requests 20000] [--before REVISION]

One nginx with one worker is the server behind both, and h2load asks. `--before` measures an older gateway in the same
run. Programs are downloaded with apt-get into the user's cache, and installed nowhere. CPU time is what one request
costs the gateway's processes: a busy machine makes the clock lie.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "isvc" / "bench-gateway"
PACKAGES = ("nginx", "nghttp2-client", "libev4", "libc-ares2", "libjansson4", "libjemalloc2")
HOST = "iris-default.localhost"  # as services have one
MESSAGE = b"\0\0\0\0\x64" + b"x" * 100
NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
  access_log off; keepalive_requests 1000000000;
  client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
  uwsgi_temp_path {folder}; scgi_temp_path {folder};
  upstream http1 {{ server 127.0.0.1:{http1}; keepalive 64; keepalive_requests 1000000000; }}
  upstream http2 {{ server 127.0.0.1:{http2}; keepalive 64; keepalive_requests 1000000000; }}
  {servers}
}}
"""
BEHIND = """
  server {{ listen 127.0.0.1:{http1}; location / {{
    default_type application/json; return 200 '{{"predictions":[1]}}'; }} }}
  server {{ listen 127.0.0.1:{http2} http2; location / {{
    default_type application/grpc; add_trailer grpc-status 0; return 200 '{message}'; }} }}
"""
PROXY = """
  server {{ listen 127.0.0.1:{http1_proxy}; location / {{
    proxy_pass http://http1; proxy_http_version 1.1; proxy_set_header Connection ""; }} }}
  server {{ listen 127.0.0.1:{http2_proxy} http2; location / {{ grpc_pass grpc://http2; }} }}
"""


class Measured(NamedTuple):
    rate: float
    cpu: float  # microseconds of the process in the middle, per request

    def better(self, other: Measured) -> Measured:
        return Measured(max(self.rate, other.rate), min(self.cpu, other.cpu))

    def __str__(self) -> str:
        return f"{self.rate:>9,.0f}/s {self.cpu:>8.0f} µs"


def program(name: str) -> tuple[str, dict[str, str]]:
    """Its path and environment, downloaded where there is none."""
    if not (CACHE / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", *PACKAGES], cwd=CACHE, check=True, capture_output=True)
        for package in CACHE.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, CACHE / "root"], check=True)
        (CACHE / "complete").touch()
    [path] = [*(CACHE / "root").glob(f"usr/*bin/{name}")]
    libraries = ":".join(str(folder) for folder in (CACHE / "root/usr/lib").glob("*-linux-gnu"))
    return str(path), {**os.environ, "LD_LIBRARY_PATH": libraries}


def nginx(stack: ExitStack, servers: str, ports: dict[str, int]) -> subprocess.Popen[bytes]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path, env = program("nginx")
    told = servers.format(message="x" * 105, **ports)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, servers=told, **ports))
    return start(stack, [path, "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"], env)


def start(stack: ExitStack, command: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, env=env)

    def stop() -> None:
        process.terminate()
        process.wait(30)

    stack.callback(stop)
    return process


def gateway(stack: ExitStack, source: Path, ports: dict[str, int], port: int) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": f"{source}:{ROOT}"}
    behind = [str(ports["http1"]), str(ports["http2"])]
    return start(stack, [sys.executable, __file__, "--serve", str(port), *behind], env)


def older(stack: ExitStack, revision: str) -> Path:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x"], cwd=folder, input=archive, check=True)
    return folder / "src"


def cpu_of(pid: int) -> float:
    """CPU seconds of a process and its children."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(stat.parent.name) == pid or int(fields[1]) == pid:
            total += sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
    return total


def measure(process: subprocess.Popen[bytes], url: str, requests: int, *flags: str) -> Measured:
    path, env = program("h2load")
    warm = [path, "-n", str(max(requests // 10, 100)), *flags, url]
    subprocess.run(warm, env=env, check=True, capture_output=True)
    before = cpu_of(process.pid)
    done = subprocess.run([path, "-n", str(requests), *flags, url], env=env, check=True, capture_output=True, text=True)
    cpu = cpu_of(process.pid) - before
    found = re.search(r"finished in .*?, ([\d.]+) req/s", done.stdout)
    succeeded = re.search(r"(\d+) succeeded", done.stdout)
    assert found is not None, done.stdout
    assert succeeded is not None, done.stdout
    assert int(succeeded[1]) > requests * 0.99, done.stdout  # nginx's gRPC loses some when connections end
    return Measured(float(found[1]), cpu / requests * 1e6)


def wait_for(name: str, process: subprocess.Popen[bytes], port: int) -> None:
    """Until it answers; what keeps it from that, it has written itself."""
    import socket

    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{name} did not start")
            time.sleep(0.05)


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--requests", type=int, default=20_000)
    flags.add_argument("--rounds", type=int, default=5, help="in turns; the best of each counts")
    flags.add_argument("--before", metavar="REVISION", help="an older gateway, measured in the same run")
    flags.add_argument("--serve", nargs=3, type=int, help=argparse.SUPPRESS)
    args = flags.parse_args()
    if args.serve:
        serve(*args.serve)
        return
    if shutil.which("apt-get") is None:
        sys.exit("nginx and h2load come from Debian's packages, and there is no apt-get here")
    from tests.ports import free_port

    ports = {name: free_port() for name in ("http1", "http2", "http1_proxy", "http2_proxy", "now", "before")}
    with ExitStack() as stack, tempfile.NamedTemporaryFile() as body:
        body.write(MESSAGE)
        body.flush()
        http1 = ("--h1", "-c", "32", "-d", body.name, "-H", "content-type: application/json")
        grpc = ("-c", "4", "-m", "16", "-d", body.name, "-H", "content-type: application/grpc", "-H", "te: trailers")
        nginx(stack, BEHIND, ports)
        proxy = nginx(stack, PROXY, ports)
        rows = [("gateway", gateway(stack, ROOT / "src", ports, ports["now"]), ports["now"], ports["now"])]
        if args.before:
            source = older(stack, args.before)
            rows.insert(
                0, (args.before[:12], gateway(stack, source, ports, ports["before"]), ports["before"], ports["before"])
            )
        rows.append(("nginx", proxy, ports["http1_proxy"], ports["http2_proxy"]))
        for name, process, port, _ in rows:
            wait_for(name, process, port)
        best: dict[tuple[str, str], Measured] = {}
        for _ in range(args.rounds):
            for name, process, plain, over_grpc in rows:
                for protocol, port, path, how in (
                    ("HTTP/1.1", plain, "v2/models/iris/infer", http1),
                    ("gRPC", over_grpc, "inference.GRPCInferenceService/ModelInfer", grpc),
                ):
                    if port:
                        url, where = f"http://{HOST}:{port}/{path}", f"--connect-to=127.0.0.1:{port}"
                        measured = measure(process, url, args.requests // args.rounds, where, *how)
                        best[name, protocol] = measured.better(best.get((name, protocol), measured))
        for (name, protocol), measured in best.items():
            print(f"{name:12} {protocol:10} {measured}")


def serve(port: int, http1: int, http2: int) -> None:
    """Runs the gateway alone, in front of one server of each protocol."""
    import uvloop

    try:
        from isvc.local.gateway.gateway import Gateway  # noqa: F401
    except ImportError:  # a revision in which the gateway was a Python program
        uvloop.run(serve_python(port, http1, http2))
    else:
        uvloop.run(serve_envoy(port, http1, http2))


def objects(http1: int, http2: int) -> tuple[list[Any], list[Any], Any]:
    """Returns Services, their EndpointSlices, and the Ingress that leads to them."""
    services, slices, paths = [], [], []
    for name, behind, path in (
        ("plain", http1, "/v2/.*"),
        ("grpc", http2, "/inference.GRPCInferenceService/.*"),
    ):
        metadata = {"name": name, "namespace": "default", "labels": {"kubernetes.io/service-name": name}}
        app_protocol = {"appProtocol": "kubernetes.io/h2c"} if name == "grpc" else {}
        services.append({"metadata": metadata, "spec": {"ports": [{"port": 80, "name": "p", **app_protocol}]}})
        endpoints = [{"addresses": ["127.0.0.1"], "conditions": {"ready": True}}]
        slices.append({"metadata": metadata, "ports": [{"name": "p", "port": behind}], "endpoints": endpoints})
        backend = {"service": {"name": name, "port": {"number": 80}}}
        paths.append({"path": path, "pathType": "ImplementationSpecific", "backend": backend})
    ingress = {
        "metadata": {"name": "i", "namespace": "default"},
        "spec": {"rules": [{"host": HOST, "http": {"paths": paths}}]},
    }
    return services, slices, ingress


async def serve_envoy(port: int, http1: int, http2: int) -> None:
    from tests.ports import free_port

    from isvc.kube.objects import Key
    from isvc.kube.resource import ENDPOINT_SLICES, SERVICES
    from isvc.local.gateway.backends import Target
    from isvc.local.gateway.envoy.bootstrap import Settings
    from isvc.local.gateway.gateway import Gateway
    from isvc.local.gateway.watching import READS
    from isvc.local.node.processes.process import Reaper
    from isvc.toolkit.cache.memory import MemoryReader

    async def nobody_knows(host: str, path: str) -> None:
        return None

    reader = MemoryReader(reads=READS)
    services, slices, ingress = objects(http1, http2)
    with tempfile.TemporaryDirectory() as folder:
        reaper = Reaper(Path(folder) / "processes")
        reaper.start()
        gateway = Gateway(
            reader,
            Settings(port, free_port()),
            folder=Path(folder) / "run",
            log_file=Path(folder) / "log",
            reaper=reaper,
            why_unready=nobody_knows,
        )
        for service, endpoint_slice in zip(services, slices, strict=True):
            reader.put(SERVICES, service)
            reader.put(ENDPOINT_SLICES, endpoint_slice)
            gateway.backends.changed(Target(Key.of(service)))
        gateway.table.put_ingress(Key.of(ingress), ingress)
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        await gateway.start()
        await ended.wait()
        await gateway.close()
        reaper.stop()


async def serve_python(port: int, http1: int, http2: int) -> None:
    """Serves with the gateway that was Python, of a checkout that has it: modules are called as they were there."""
    modules = {
        name: importlib.import_module(f"isvc.local.gateway.{name}")
        for name in ("endpoints.backends", "guard", "listener", "proxy", "routes.table", "server")
    }
    from isvc.kube.resource import ENDPOINT_SLICES, SERVICES

    reader = importlib.import_module("isvc.toolkit.memory").MemoryReader(reads=modules["server"].READS)
    services, slices, ingress = objects(http1, http2)
    for service, endpoint_slice in zip(services, slices, strict=True):
        reader.put(SERVICES, service)
        reader.put(ENDPOINT_SLICES, endpoint_slice)
    table = modules["routes.table"].RouteTable.build([ingress])
    backends = modules["endpoints.backends"].Backends(reader)
    proxy = modules["proxy"].Proxy(lambda: table, backends, modules["guard"].Guard())
    await modules["listener"].Listener(proxy).listen("127.0.0.1", port)
    await asyncio.Event().wait()


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()

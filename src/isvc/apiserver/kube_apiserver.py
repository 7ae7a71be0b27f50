"""The embedded API server behind the command lines of kube-apiserver and etcd, for test suites that start both.

`write_assets` makes a folder that can be given as KUBEBUILDER_ASSETS. Its `kube-apiserver` starts this server with the
ports, certificates and tokens of its flags; flags that it does not know are ignored. Its `etcd` only answers health
checks: objects are kept in memory, and end with the server.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

_SCRIPT = """#!/bin/sh
exec "{python}" -m isvc.apiserver.kube_apiserver {program} "$@"
"""
_HEALTH = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\nConnection: close\r\n\r\n"


def write_assets(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for program in ("etcd", "kube-apiserver"):
        script = folder / program
        script.write_text(_SCRIPT.format(python=sys.executable, program=program))
        script.chmod(0o755)


def _flags(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("kube-apiserver", description="isvc's API server in the place of kube-apiserver.")
    parser.add_argument("--secure-port", type=int, default=6443)
    parser.add_argument("--bind-address", default="127.0.0.1")
    parser.add_argument("--cert-dir", type=Path, required=True)
    parser.add_argument("--tls-cert-file", type=Path)
    parser.add_argument("--tls-private-key-file", type=Path)
    parser.add_argument("--client-ca-file", type=Path)
    parser.add_argument("--token-auth-file", type=Path)
    parser.add_argument("--service-cluster-ip-range", default="10.0.0.0/16")
    parser.add_argument("--disable-admission-plugins", action="append", default=[])
    parser.add_argument("--version", action="version", version="Kubernetes v1.35.4")
    return parser.parse_known_args(arguments)[0]


async def _serve_api(arguments: list[str], stop: asyncio.Event) -> None:
    from isvc.apiserver.access.identity import Credentials, read_tokens
    from isvc.apiserver.server import Server

    flags = _flags(arguments)
    serving = (
        flags.tls_cert_file or flags.cert_dir / "apiserver.crt",
        flags.tls_private_key_file or flags.cert_dir / "apiserver.key",
    )
    credentials = Credentials(
        serving if all(path.exists() for path in serving) else None,
        flags.client_ca_file,
        read_tokens(flags.token_auth_file) if flags.token_auth_file else {},
    )
    server = Server(
        flags.cert_dir / "isvc",
        ephemeral=True,
        host=flags.bind_address,
        port=flags.secure_port,
        credentials=credentials,
        service_network=flags.service_cluster_ip_range.split(",")[0],
        without_plugins=[name for each in flags.disable_admission_plugins for name in each.split(",")],
    )
    await server.start()
    await stop.wait()
    await server.stop()


async def _serve_health(arguments: list[str], stop: asyncio.Event) -> None:
    parser = argparse.ArgumentParser("etcd")
    parser.add_argument("--listen-client-urls", default="http://localhost:2379")
    address = urlsplit(parser.parse_known_args(arguments)[0].listen_client_urls.split(",")[0])

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(_HEALTH + b'{"health":"true"}')
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(answer, address.hostname, address.port)
    async with listener:
        await stop.wait()


async def _run(program: str, arguments: list[str]) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    await (_serve_health if program == "etcd" else _serve_api)(arguments, stop)


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], sys.argv[2:]))

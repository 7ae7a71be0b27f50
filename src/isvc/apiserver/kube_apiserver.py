"""The embedded API server behind the command lines of kube-apiserver and etcd, for test suites that start both.

`write_assets` makes a folder that can be given as KUBEBUILDER_ASSETS. Its `kube-apiserver` starts this server with the
ports, certificates and tokens of its flags. Other flags of kube-apiserver have no effect; a flag or a feature gate that
it does not have is refused, in its words. Its `etcd` only answers health checks: objects are kept in memory, and end
with the server.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NoReturn
from urllib.parse import urlsplit

import orjson

from isvc.kube.schemas import RELEASE

_KNOWN: Final = Path(__file__).parent / "data" / "flags.json"
_BOOLEANS: Final = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}

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


class Refused(Exception):
    """kube-apiserver would not start with these flags."""


class _Flags(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message)


def read_flags(arguments: list[str]) -> argparse.Namespace:
    """Returns the flags that have an effect; raises Refused for what kube-apiserver does not take."""
    known = orjson.loads(_KNOWN.read_bytes())
    parser = _Flags(
        "kube-apiserver", description="isvc's API server in the place of kube-apiserver.", allow_abbrev=False
    )
    parser.add_argument("--secure-port", type=int, default=6443)
    parser.add_argument("--bind-address", default="127.0.0.1")
    parser.add_argument("--cert-dir", type=Path, required=True)
    parser.add_argument("--tls-cert-file", type=Path)
    parser.add_argument("--tls-private-key-file", type=Path)
    parser.add_argument("--client-ca-file", type=Path)
    parser.add_argument("--token-auth-file", type=Path)
    parser.add_argument("--service-cluster-ip-range", default="10.0.0.0/16")
    parser.add_argument("--disable-admission-plugins", action="append", default=[])
    parser.add_argument("--feature-gates", action="append", default=[])
    parser.add_argument("-v", "--v", help=argparse.SUPPRESS)
    parser.add_argument("--version", action="version", version=f"Kubernetes {RELEASE}")
    effective = {option for action in parser._actions for option in action.option_strings}
    for name in {*known["switches"], *known["values"]} - {option.removeprefix("--") for option in effective}:
        is_switch = name in known["switches"]
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS, nargs="?" if is_switch else None)
    flags, others = parser.parse_known_args(arguments)
    if others and others[0].startswith("-"):
        raise Refused(f"unknown flag: {others[0].partition('=')[0]}")
    if others:
        raise Refused(f'"kube-apiserver" does not take any arguments, got {orjson.dumps(others).decode()}')
    for gate in (each.strip() for value in flags.feature_gates for each in value.split(",") if each.strip()):
        _check_gate(gate.removeprefix("kube:"), known)
    return flags


def _check_gate(gate: str, known: Mapping[str, Collection[str]]) -> None:
    name, equals, value = gate.partition("=")
    if not equals:
        raise Refused(f"missing bool value for {name}")
    if value.lower() not in _BOOLEANS:
        raise Refused(f'invalid value of {gate}, err: strconv.ParseBool: parsing "{value}": invalid syntax')
    if name in known["locked"] and not _BOOLEANS[value.lower()]:
        raise Refused(f"cannot set feature gate {name} to {value}, feature is locked to true")
    if name not in {*known["gates"], *known["locked"]}:
        raise Refused(f"unrecognized feature gate: {name}")


async def _serve_api(arguments: list[str], stop: asyncio.Event) -> None:
    from isvc.apiserver.access.identity import Credentials, read_tokens
    from isvc.apiserver.server import Server

    flags = read_flags(arguments)
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
    try:
        asyncio.run(_run(sys.argv[1], sys.argv[2:]))
    except Refused as error:
        sys.exit(f"Error: {error}")

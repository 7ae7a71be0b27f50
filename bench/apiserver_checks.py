"""What authorization and admission cost: objects created and read by an administrator on a server without admission
plugins, and by a user whom RBAC allows it on a server with all of them. Plugins look at pods in particular, and fill in
some of their fields.

Both servers run at once and are asked in turns, so that whatever else the machine does disturbs both alike. Reported:
the CPU of the server for each request, the median of the rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from bench.apiserver import Connection, head  # noqa: E402
from tests.ports import free_port  # noqa: E402

from isvc.apiserver.admission.plugins import ORDER  # noqa: E402

NAMESPACE = "/api/v1/namespaces/default"
BINDING = {
    "metadata": {"name": "bench"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
    "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bench"}],
}


def config_map(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app": "bench"}}, "data": {f"key-{n}": "x" * 120 for n in range(16)}}


def pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example:1", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}}
    return {"metadata": {"name": name, "labels": {"app": "bench"}}, "spec": {"containers": [container]}}


class Measured:
    """A server, and one user of it."""

    def __init__(self, folder: Path, token: str, without_plugins: str) -> None:
        folder.mkdir()
        (folder / "tokens.csv").write_text('admin,admin,1,"system:masters"\nuser,bench,2\n')
        self._port = free_port()
        self._token = token
        arguments = [f"--secure-port={self._port}", f"--cert-dir={folder}", f"--token-auth-file={folder}/tokens.csv"]
        arguments += [f"--disable-admission-plugins={without_plugins}"]
        command = [sys.executable, "-m", "isvc.apiserver.kube_apiserver", "kube-apiserver", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.times: dict[str, list[float]] = defaultdict(list)
        self._count = 0

    async def connect(self) -> None:
        tls, loop = ssl._create_unverified_context(), asyncio.get_running_loop()
        while True:
            try:
                _, self._connection = await loop.create_connection(Connection, "127.0.0.1", self._port, ssl=tls)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                break
        bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
        assert await self._ask("POST", bindings, BINDING, "admin") == 201

    async def round(self, requests: int) -> None:
        names = [f"object-{self._count + n}" for n in range(requests)]
        self._count += requests
        for kind, make in (("configmaps", config_map), ("pods", pod)):
            path = f"{NAMESPACE}/{kind}"
            began = self._cpu_seconds()
            for name in names:
                assert await self._ask("POST", path, make(name), self._token) == 201
            created = self._cpu_seconds()
            for name in names * 4:
                assert await self._ask("GET", f"{path}/{name}", None, self._token) == 200
            self.times[f"create {kind}"].append((created - began) / requests)
            self.times[f"get {kind}"].append((self._cpu_seconds() - created) / (4 * requests))

    async def _ask(self, method: str, path: str, body: Any, token: str) -> int:
        sent = b"" if body is None else json.dumps(body).encode()
        return await self._connection.ask(head(method, path, "localhost", token, len(sent)).encode() + sent)

    def _cpu_seconds(self) -> float:
        """To the nanosecond, where the clock of /proc/PID/stat ticks every ten milliseconds."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9


async def measure(rounds: int, requests: int) -> None:
    everything = ",".join(each.__name__ for each in ORDER)
    with tempfile.TemporaryDirectory() as folder:
        servers = {
            "without": Measured(Path(folder, "without"), "admin", everything),
            "with": Measured(Path(folder, "with"), "user", "ServiceAccount"),
        }
        try:
            for each in servers.values():
                await each.connect()
            for _ in range(rounds):
                for each in servers.values():
                    await each.round(requests)
        finally:
            for each in servers.values():
                each.process.terminate()
                each.process.wait()
    print(f"{'server CPU each, µs':24}{'without':>10}{'with':>10}{'more':>8}")
    for kind in servers["with"].times:
        bare, checked = (statistics.median(each.times[kind]) * 1e6 for each in servers.values())
        print(f"{kind:24}{bare:>10.0f}{checked:>10.0f}{checked / bare - 1:>8.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=300, help="objects of a kind in a round, each read four times")
    options = parser.parse_args()
    asyncio.run(measure(options.rounds, options.requests))


if __name__ == "__main__":
    main()

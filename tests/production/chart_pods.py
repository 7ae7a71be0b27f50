"""Deployments of the chart as a cluster would run them, but as processes of this machine: with their command, account
and mounted Secrets, and with Services that lead to them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import aiohttp
import yaml
from tests.ports import free_port
from tests.servers import Cluster
from tests.waiting import until

from isvc.kube.errors import NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import ENDPOINT_SLICES, ENDPOINTS, SECRETS, SERVICES
from isvc.toolkit.client import Client

BIN = Path(sys.executable).parent
PORT_FLAGS = {
    "webhook-server": "--webhook-port={}",
    "metrics": "--metrics-addr=127.0.0.1:{}",
    "probes": "--health-probe-addr=127.0.0.1:{}",
    "llmisvc-webhook": "--llmisvc-webhook-port={}",
    "llmisvc-metrics": "--llmisvc-metrics-addr=127.0.0.1:{}",
}


@dataclass(frozen=True)
class Pod:
    client: Client
    folder: Path
    namespace: str
    labels: dict[str, str]
    spec: Object
    ports: dict[str, int]

    @property
    def container(self) -> Object:
        return dict(self.spec["containers"][0])

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def inside(self, path: str) -> Path:
        """Where a path below the pod's /tmp, the only folder of its own, is on this machine."""
        return self.folder / Path(path).relative_to("/tmp")

    async def mount(self) -> None:
        """Bring the mounted Secrets up to date, as a kubelet does: with all files of a Secret at once."""
        secrets = {each["name"]: each["secret"]["secretName"] for each in self.spec["volumes"] if "secret" in each}
        for mount in self.container["volumeMounts"]:
            if secret := secrets.get(mount["name"]):
                self._write(self.inside(mount["mountPath"]), await self._secret(secret))

    async def _secret(self, name: str) -> dict[str, str]:
        """The data of a Secret, once it is there."""

        async def found() -> dict[str, str] | None:
            with suppress(NotFound):
                return dict((await self.client.get(SECRETS, name, self.namespace))["data"])
            return None

        return dict(await until(found, f"the secret {name} is there", within=300, every=0.2))

    def _write(self, folder: Path, data: dict[str, str]) -> None:
        version = folder / f"..{uuid4()}"
        version.mkdir(parents=True)
        for name, value in data.items():
            (version / name).write_bytes(base64.b64decode(value))
            if not (folder / name).is_symlink():
                (folder / name).symlink_to(f"..data/{name}")
        (folder / "..data_tmp").symlink_to(version.name)
        (folder / "..data_tmp").rename(folder / "..data")

    async def start(self, cluster: Cluster) -> asyncio.subprocess.Process:
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.spec['serviceAccountName']}/token"
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = (await self.client.request("POST", path, body=review))["status"]["token"]
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        (self.folder / "kubeconfig").write_text(json.dumps(config))
        here = {"KUBECONFIG": str(self.folder / "kubeconfig"), "TMPDIR": str(self.folder)}
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                str(BIN / self.container["command"][0]),
                *(argument.replace("=/tmp/", f"={self.folder}/") for argument in self.container["args"]),
                *(PORT_FLAGS[name].format(port) for name, port in self.ports.items()),
                env={**os.environ, **here, "POD_NAMESPACE": self.namespace},
                stdout=log,
                stderr=log,
            )

    async def ready(self) -> None:
        url = f"http://127.0.0.1:{self.ports['probes']}/readyz"
        async with aiohttp.ClientSession() as session:

            async def answers() -> bool:
                with suppress(aiohttp.ClientError):
                    async with session.get(url) as response:
                        return response.status == 200
                return False

            await until(answers, f"{self.container['command'][0]} is ready", within=120, every=0.1)

    def certificate(self, port: str) -> str:
        """What the pod serves with on a port."""
        return ssl.get_server_certificate(("127.0.0.1", self.ports[port]))

    async def join_services(self) -> None:
        """Let the Services that select this pod lead to it, and to nothing else."""
        for service in (await self.client.list(SERVICES, self.namespace)).items:
            if service["spec"].get("selector", {"nobody": ""}).items() <= self.labels.items():
                port = service["spec"]["ports"][0]
                await self._lead(service["metadata"]["name"], port["name"], self.ports[port["targetPort"]])

    async def _lead(self, service: str, name: str, port: int) -> None:
        """An EndpointSlice for kube-apiserver, Endpoints for the embedded one."""
        address = machine_address()
        metadata = {"name": service, "namespace": self.namespace, "labels": {"kubernetes.io/service-name": service}}
        ports = [{"name": name, "port": port, "protocol": "TCP"}]
        piece = {"addressType": "IPv4", "endpoints": [{"addresses": [address]}], "ports": ports}
        subset = {"addresses": [{"ip": address}], "ports": ports}
        for resource, content in ((ENDPOINT_SLICES, piece), (ENDPOINTS, {"subsets": [subset]})):
            with suppress(NotFound):
                await self.client.delete(resource, service, self.namespace)
            kind: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
            await self.client.create(resource, {**kind, **content})


def machine_address() -> str:
    """An address of this machine that an EndpointSlice may hold: not a loopback one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing
        return str(probe.getsockname()[0])


@asynccontextmanager
async def running(cluster: Cluster, client: Client, folder: Path, deployment: Object) -> AsyncIterator[Pod]:
    """The pod of a Deployment, ready and behind its Services; nothing that it asks of the API server is forbidden."""
    template, metadata = deployment["spec"]["template"], deployment["metadata"]
    place = folder / metadata["name"]
    place.mkdir(parents=True)
    ports = {port["name"]: free_port() for port in template["spec"]["containers"][0]["ports"]}
    pod = Pod(client, place, metadata["namespace"], template["metadata"]["labels"], template["spec"], ports)
    await pod.mount()
    container = asyncio.create_task(_keep_running(pod, cluster))
    try:
        await pod.ready()
        await pod.join_services()
        yield pod
    finally:
        container.cancel()
        await asyncio.wait([container])
    assert "forbidden" not in pod.log.read_text().lower(), pod.log.read_text()[-3000:]


async def _keep_running(pod: Pod, cluster: Cluster) -> None:
    """Start the container again whenever it ends, as a kubelet does: on a busy machine a manager may lose its lease."""
    while True:
        process = await pod.start(cluster)
        try:
            await process.wait()
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()

"""The managers as a cluster runs them: replicas that elect a leader, with certificates of their own, behind one Service
address, under a ServiceAccount that has the roles of the chart and no others."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from tests import definitions
from tests.ports import free_port
from tests.production.balancer import Balancer
from tests.servers import Cluster, discard, start
from tests.waiting import until

from isvc.api.kinds.crds import crds
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS
from isvc.cli import chart
from isvc.kube.objects import Object
from isvc.kube.resource import (
    CONFIG_MAPS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.local.install import webhook_configurations
from isvc.local.install.config import config_map
from isvc.programs.webhooks import ISVC_WEBHOOKS
from isvc.toolkit.client import Client, kubeconfig

ROOT = Path(__file__).parents[2]
SYSTEM = "kserve"
ACCOUNT = "kserve-controller-manager"
LEASE = "kserve-controller-manager-leader-lock"
_RBAC = "rbac.authorization.k8s.io"
RESOURCES = {
    "ServiceAccount": Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    "ClusterRole": Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False),
    "ClusterRoleBinding": Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False),
    "Role": Resource(_RBAC, "v1", "roles", "Role"),
    "RoleBinding": Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
    "MutatingWebhookConfiguration": MUTATING_WEBHOOK_CONFIGURATIONS,
    "ValidatingWebhookConfiguration": VALIDATING_WEBHOOK_CONFIGURATIONS,
}
ACCOUNT_KINDS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
RUNTIME: Object = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "ClusterServingRuntime",
    "metadata": {"name": "sklearn"},
    "spec": {
        "supportedModelFormats": [{"name": "sklearn", "version": "1", "autoSelect": True}],
        "protocolVersions": ["v1"],
        "containers": [{"name": "kserve-container", "image": "sklearn:1", "args": ["--model_dir=/mnt/models"]}],
    },
}
STORAGE: Object = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "ClusterStorageContainer",
    "metadata": {"name": "default"},
    "spec": {
        "container": {"name": "storage-initializer", "image": "storage:1"},
        "supportedUriFormats": [{"prefix": "gs://"}],
    },
}


@dataclass
class Replica:
    name: str
    process: asyncio.subprocess.Process
    log: Path
    webhook_port: int
    metrics_port: int
    probe_port: int

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    async def ready(self) -> None:
        async with aiohttp.ClientSession() as session:

            async def answers() -> bool:
                assert self.alive, f"{self.name} ended with {self.process.returncode}:\n{self.log.read_text()[-3000:]}"
                with suppress(aiohttp.ClientError):
                    async with session.get(f"http://127.0.0.1:{self.probe_port}/readyz") as response:
                        return response.status == 200
                return False

            await until(answers, f"{self.name} is ready", within=120, every=0.1)

    async def metrics(self) -> str:
        url = f"http://127.0.0.1:{self.metrics_port}/metrics"
        try:
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                return await response.text()
        except aiohttp.ClientError:  # it has just been started, or is gone
            return ""

    async def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


@dataclass
class Installation:
    cluster: Cluster
    client: Client
    balancer: Balancer
    folder: Path
    program: str = "isvc-manager"
    account: str = ACCOUNT
    lease: str = LEASE
    replicas: dict[str, Replica] = field(default_factory=dict)
    _started: int = 0

    async def set_up(self) -> None:
        """Everything that is there before the managers run: kinds, roles, configuration, a runtime, webhooks."""
        create = self.client.create
        await create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
        await definitions.install(self.client, *crds(described=False))
        other = {"isvc-manager": "llmisvc", "llmisvc-manager": "manager"}[self.program]
        for manifest in chart.render(SYSTEM, {other: {"enabled": False}}):
            if manifest["kind"] in ACCOUNT_KINDS:
                await create(RESOURCES[manifest["kind"]], manifest)
        await create(CONFIG_MAPS, _behind_ingresses(config_map(SYSTEM, 80)))
        for resource, manifest in ((CLUSTER_SERVING_RUNTIMES, RUNTIME), (CLUSTER_STORAGE_CONTAINERS, STORAGE)):
            await create(resource, manifest)
        for manifest in webhook_configurations(ISVC_WEBHOOKS, f"https://localhost:{self.balancer.port}", b""):
            await create(RESOURCES[manifest["kind"]], manifest)

    async def start(
        self,
        name: str,
        server: str = "",
        *,
        flags: Sequence[str] = ("--leader-elect",),
        environment: Mapping[str, str] | None = None,
        joins: bool = True,
    ) -> Replica:
        """Start a replica, which reaches the API server itself or through `server`, and `joins` the Service at once."""
        self._started += 1
        folder = self.folder / f"{self._started}-{name}"
        folder.mkdir()
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(await self._kubeconfig(server or self.cluster.url)))
        webhooks, metrics, probes = free_port(), free_port(), free_port()
        log = folder / "log"
        with log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name(self.program)),
                *flags,
                f"--webhook-port={webhooks}",
                f"--metrics-addr=127.0.0.1:{metrics}",
                f"--health-probe-addr=127.0.0.1:{probes}",
                env={**os.environ, "KUBECONFIG": str(kubeconfig), "TMPDIR": str(folder), **(environment or {})},
                stdout=output,
                stderr=output,
            )
        replica = self.replicas[name] = Replica(name, process, log, webhooks, metrics, probes)
        if joins:
            self._balance()
        return replica

    async def kill(self, name: str) -> None:
        """As a node that loses power: no goodbye, and the Service drops the endpoint."""
        await self.replicas.pop(name).kill()
        self._balance()

    async def replace(self, name: str, new: str, *, flags: Sequence[str], until_noticed: Awaitable[object]) -> None:
        """As a rolling update: another replica is ready, then this one is told to end, and the Service notices late.

        It is late by ten seconds at most.
        """
        await (await self.start(new, flags=flags, joins=False)).ready()
        self._balance()
        old = self.replicas[name]
        old.process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(until_noticed, 10)
        del self.replicas[name]
        self._balance()
        assert await old.process.wait() == 0, old.log.read_text()[-3000:]

    async def stop(self) -> None:
        for replica in self.replicas.values():
            await replica.kill()

    def refusals(self) -> list[str]:
        """What any replica logged of a call that its roles do not allow."""
        logs = (log.read_text() for log in self.folder.glob("*/log"))
        return [line for log in logs for line in log.splitlines() if "forbidden" in line.lower()]

    async def leader(self) -> str:
        """The name of the replica that says it leads; "" if none does."""
        for name, replica in self.replicas.items():
            if replica.alive and f'leader_election_master_status{{name="{self.lease}"}} 1.0' in await replica.metrics():
                return name
        return ""

    async def led(self) -> str:
        return str(await until(self.leader, "a replica leads", within=120, every=0.2))

    def _balance(self) -> None:
        self.balancer.ports = [replica.webhook_port for replica in self.replicas.values()]

    async def _kubeconfig(self, server: str) -> Object:
        path = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{self.account}/token"
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        token = (await self.client.request("POST", path, body=review))["status"]["token"]
        cluster = {"server": server} | ({"insecure-skip-tls-verify": True} if server.startswith("https") else {})
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": "manager", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "manager"}}],
        }


def _behind_ingresses(config: Object) -> Object:
    """Nobody accepts HTTPRoutes here, and an Ingress needs nobody to be ready."""
    ingress = {**json.loads(config["data"]["ingress"]), "enableGatewayApi": False, "pathBasedURL": False}
    return {**config, "data": {**config["data"], "ingress": json.dumps(ingress)}}


@asynccontextmanager
async def installed(
    folder: Path, program: str = "isvc-manager", account: str = ACCOUNT, lease: str = LEASE
) -> AsyncIterator[Installation]:
    """An installation on a kube-apiserver of its own."""
    (folder / "cluster").mkdir()
    cluster = start("kube-apiserver", folder / "cluster")
    try:
        async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client, Balancer() as balancer:
            installation = Installation(cluster, client, balancer, folder, program, account, lease)
            await installation.set_up()
            try:
                yield installation
            finally:
                await installation.stop()
    finally:
        discard(cluster)

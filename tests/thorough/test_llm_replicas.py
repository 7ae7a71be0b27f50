"""Two replicas of llmisvc-manager, as real processes: one leads, and when it is killed the other loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests import definitions
from tests.definitions import PATIENCE
from tests.ports import free_port
from tests.waiting import until

from isvc.api.kinds.crds import crds
from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object, dig
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, LEASES
from isvc.programs.llmisvc_manager import PROGRAM
from isvc.serving.config import CONFIG_MAP
from isvc.toolkit.client import Client

TEMPLATE: Object = {"template": {"containers": [{"name": "main", "image": "registry.example.com/server:1"}]}}
MODEL: Object = {"uri": "pvc://claim/model", "name": "model"}


class Replicas:
    def __init__(self, kubeconfig: Path, client: Client, namespace: str) -> None:
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "POD_NAMESPACE": namespace}
        self._client, self._namespace = client, namespace
        self._started: list[asyncio.subprocess.Process] = []

    async def start(self) -> asyncio.subprocess.Process:
        ports = [f"--webhook-port={free_port()}", f"--health-probe-addr=127.0.0.1:{free_port()}", "--metrics-addr=0"]
        program = Path(sys.executable).with_name(PROGRAM.name)
        process = await asyncio.create_subprocess_exec(
            str(program), "--leader-elect", *ports, env=self._environment, stderr=asyncio.subprocess.DEVNULL
        )
        self._started.append(process)
        return process

    async def leader(self) -> str:
        lease = await self._client.find(LEASES, PROGRAM.lease, self._namespace)
        return str(dig(lease, "spec", "holderIdentity") or "")

    async def serve(self, name: str) -> None:
        service: Object = {
            "apiVersion": LLM_INFERENCE_SERVICES.api_version,
            "kind": LLM_INFERENCE_SERVICES.kind,
            "metadata": {"name": name, "namespace": self._namespace},
            "spec": {"model": MODEL},
        }
        await self._client.create(LLM_INFERENCE_SERVICES, service)

    async def is_served(self, name: str) -> bool:
        with contextlib.suppress(NotFound):
            return bool(await self._client.get(DEPLOYMENTS, f"{name}-kserve", self._namespace))
        return False

    async def stop(self) -> None:
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


@pytest.fixture
async def replicas(cluster, client, namespace) -> AsyncIterator[Replicas]:
    await definitions.install(client, *crds(described=False))
    metadata = {"name": CONFIG_MAP, "namespace": namespace}
    await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}})
    preset = {
        "apiVersion": LLM_INFERENCE_SERVICE_CONFIGS.api_version,
        "kind": LLM_INFERENCE_SERVICE_CONFIGS.kind,
        "metadata": {"name": "kserve-config-llm-template", "namespace": namespace},
        "spec": TEMPLATE,
    }
    await client.create(LLM_INFERENCE_SERVICE_CONFIGS, preset)
    started = Replicas(cluster.kubeconfig, client, namespace)
    yield started
    await started.stop()
    for resource in (LLM_INFERENCE_SERVICES, LLM_INFERENCE_SERVICE_CONFIGS):
        for left in (await client.list(resource, namespace)).items:
            await client.patch(resource, left["metadata"]["name"], {"metadata": {"finalizers": None}}, namespace)


async def test_a_killed_leader_hands_over_and_no_service_is_forgotten(replicas):
    first = await replicas.start()
    leader = await until(replicas.leader, "the first leads", within=PATIENCE)
    await replicas.start()
    await replicas.serve("before")
    await until(lambda: replicas.is_served("before"), "the leader acts", within=PATIENCE)
    assert await replicas.leader() == leader, "both cannot lead"
    first.kill()
    await replicas.serve("between")  # nobody leads now
    await until(lambda: replicas.is_served("between"), "the second acts", within=PATIENCE)
    assert await replicas.leader() not in ("", leader)

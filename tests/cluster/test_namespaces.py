"""Both managers with Roles alone, as the chart installs them for some namespaces: nothing they ask for is refused."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from tests import definitions
from tests.cluster.lifecycles import stage as inference_services
from tests.managers.test_llm_routing import Stage, set_up
from tests.production.chart_pods import running
from tests.production.installation import ACCOUNT_KINDS, RESOURCES
from tests.servers import Cluster
from tests.waiting import until

from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.cli import chart
from isvc.kube.objects import Object, dig, finalizers_of
from isvc.kube.resource import NAMESPACES, ROLES
from isvc.programs.llmisvc_manager import WITHIN_NAMESPACES
from isvc.toolkit.client import Client


@pytest.mark.parametrize("in_manager", [False, True], ids=["own process", "one process"])
async def test_llm_services_of_some_namespaces(cluster: Cluster, client: Client, tmp_path: Path, in_manager: bool):
    system, inside, outside = (f"{part}-{uuid.uuid4().hex[:8]}" for part in ("system", "inside", "outside"))
    for name in (system, inside, outside):
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await definitions.install(client, *inference_services.our_crds())
    await set_up(client, system)
    llmisvc = {"enabled": True, "inManager": in_manager}
    chosen = {"namespaces": [inside], "llmisvc": llmisvc, "webhooks": {"enabled": False}}
    manifests = chart.render(system, {**chosen, "manager": {"enabled": in_manager}})
    for each in (each for each in manifests if each["kind"] in ACCOUNT_KINDS):
        await client.create(RESOURCES[each["kind"]], each)
    [deployment] = [each for each in manifests if each["kind"] == "Deployment"]
    router: Object = {"route": {}, "gateway": {}, "scheduler": {}}
    preset = "kserve-config-llm-scheduler"

    async def noticed() -> bool:
        return bool(finalizers_of(await client.get(LLM_INFERENCE_SERVICES, "tulip", inside)))

    async def used() -> bool:
        return bool(finalizers_of(await client.get(LLM_INFERENCE_SERVICE_CONFIGS, preset, system)))

    async def gone() -> bool:
        return await client.find(LLM_INFERENCE_SERVICES, "tulip", inside) is None

    async with running(cluster, client, tmp_path, deployment) as pod:
        await Stage(client, system, outside).serve("rose", router)
        stage = Stage(client, system, inside)
        await stage.serve("tulip", router)
        await until(noticed, "the manager has started and seen the service", within=180)
        await stage.ready("tulip")
        made = await stage.of_router()
        assert f"{ROLES} tulip-epp-role" in made
        assert not any("clusterrolebinding" in each for each in made)
        await until(used, "the preset says that it is used", within=120)
        await client.delete(LLM_INFERENCE_SERVICES, "tulip", inside)
        await until(gone, "the service is deleted", within=120)
        rose = await client.get(LLM_INFERENCE_SERVICES, "rose", outside)
        assert not dig(rose, "status", "conditions")
        said = pod.log.read_text()
        assert all(limit in said for limit in WITHIN_NAMESPACES)
    await client.delete(LLM_INFERENCE_SERVICES, "rose", outside)

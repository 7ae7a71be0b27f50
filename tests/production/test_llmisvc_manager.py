"""llmisvc-manager has the rights it needs, and no more are asked for: a service comes, changes, and goes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from tests import definitions
from tests.cluster.faulty_proxy import FaultyProxy
from tests.cluster.lifecycles.stage import foreign_crd
from tests.production.installation import SYSTEM, Installation, installed
from tests.waiting import until

from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.kube.errors import NotFound
from isvc.kube.objects import Object, dig, name_of
from isvc.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    DEPLOYMENTS,
    LEASES,
    NAMESPACES,
    ROLES,
    SECRETS,
    Resource,
)
from isvc.programs.llmisvc_manager import PROGRAM
from isvc.serving.shipped import shipped_presets
from isvc.serving.thirdparty import GATEWAYS, HTTP_ROUTES, INFERENCE_POOLS

NAMESPACE = "team"
SERVICE: Object = {
    "apiVersion": LLM_INFERENCE_SERVICES.api_version,
    "kind": LLM_INFERENCE_SERVICES.kind,
    "metadata": {"name": "model", "namespace": NAMESPACE},
    "spec": {
        "model": {"uri": "pvc://claim/model", "name": "model"},
        "router": {"route": {}, "scheduler": {}},
    },
}
FOREIGN = (HTTP_ROUTES, INFERENCE_POOLS, GATEWAYS)
GATEWAY: Object = {
    "apiVersion": GATEWAYS.api_version,
    "kind": GATEWAYS.kind,
    "metadata": {"name": "kserve-ingress-gateway", "namespace": SYSTEM},
    "spec": {"gatewayClassName": "example", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}
CHILDREN: dict[str, Resource] = {
    "model-kserve": DEPLOYMENTS,
    "model-kserve-router-scheduler": DEPLOYMENTS,
    "model-kserve-self-signed-certs": SECRETS,
    "model-epp-role": ROLES,
    "model-inference-pool": INFERENCE_POOLS,
    "model-kserve-route": HTTP_ROUTES,
}


@pytest.fixture
async def installation(tmp_path: Path) -> AsyncIterator[Installation]:
    async with installed(tmp_path, PROGRAM.name, "llmisvc-controller-manager", PROGRAM.lease) as made:
        client = made.client
        await definitions.install(client, *map(foreign_crd, FOREIGN))
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        await client.create(GATEWAYS, GATEWAY)
        for preset in shipped_presets():
            placed = {**preset, "metadata": {**preset["metadata"], "namespace": SYSTEM}}
            await client.create(LLM_INFERENCE_SERVICE_CONFIGS, placed)
        yield made


async def test_a_service_comes_and_goes_within_the_rights_of_the_role(installation):
    client = installation.client

    async def is_there(resource: Resource, name: str) -> bool:
        with suppress(NotFound):
            return bool(await client.get(resource, name, NAMESPACE if resource.namespaced else ""))
        return False

    async def children() -> bool:
        assert installation.refusals() == []
        return all([await is_there(resource, name) for name, resource in CHILDREN.items()])

    async def has_gone() -> bool:
        return not await is_there(LLM_INFERENCE_SERVICES, "model")

    replica = await installation.start("one", flags=("--leader-elect", "--metrics-secure=false"))
    await replica.ready()
    await client.create(LLM_INFERENCE_SERVICES, SERVICE)
    await until(children, "all children are there", within=120, every=0.2)
    assert dig(await client.get(LEASES, PROGRAM.lease, SYSTEM), "spec", "holderIdentity")
    bindings = (await client.list(CLUSTER_ROLE_BINDINGS, labels="app.kubernetes.io/name=model")).items
    assert len(bindings) == 1
    await client.delete(LLM_INFERENCE_SERVICES, "model", NAMESPACE)
    await until(has_gone, "the finalizer is gone", within=60, every=0.2)
    assert not await is_there(CLUSTER_ROLE_BINDINGS, name_of(bindings[0]))
    assert installation.refusals() == []


async def test_a_leader_that_is_cut_off_stops_before_another_leads(installation):
    """The lease passes on only after the old leader has ended; the new one then does the work."""
    flags = ("--leader-elect", "--metrics-secure=false")

    async def leads(name: str) -> bool:
        return bool(await installation.leader() == name)

    async def has_deployment() -> bool:
        return bool((await installation.client.list(DEPLOYMENTS, NAMESPACE)).items)

    async with FaultyProxy(installation.cluster) as proxy:
        first = await installation.start("a", proxy.config.server, flags=flags)
        await first.ready()
        await until(partial(leads, "a"), "the first leads", within=60)
        await (await installation.start("b", flags=flags)).ready()
        proxy.go_away()
        await until(lambda: not first.alive, "the first ends", within=60)
        lease = await installation.client.get(LEASES, PROGRAM.lease, SYSTEM)
        assert lease["spec"]["leaseTransitions"] == 0, "the second led while the first was still there"
        assert "was lost" in first.log.read_text()
        await installation.kill("a")
        await until(partial(leads, "b"), "the second leads", within=60)
        await installation.client.create(LLM_INFERENCE_SERVICES, SERVICE)
        await until(has_deployment, "the second does the work", within=60, every=0.2)

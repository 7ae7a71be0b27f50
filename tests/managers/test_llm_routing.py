"""Routes, pools, schedulers and routing groups of LLMInferenceServices, with a gateway that answers as real ones do.

A gateway accepts a route or a pool generation by generation, a moment after it changed. No webhooks take part, so
services are written as the defaulter would leave them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests import definitions
from tests.burial import bury
from tests.cluster.lifecycles.stage import INGRESS, Running, foreign_crd, running
from tests.thorough.test_llm_lifecycles import listed, our_crds
from tests.waiting import until

from isvc.api.annotations import STOP
from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.status import fold
from isvc.controllers.llmisvc.watches import controller
from isvc.kube.errors import AlreadyExists, Conflict, NotFound
from isvc.kube.objects import Key, Object, dig, name_of
from isvc.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from isvc.serving.thirdparty import (
    GATEWAY_CLASSES,
    GATEWAYS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
)
from isvc.toolkit.client import Client, kubeconfig
from isvc.wire.x509.check import read_certificate

FOREIGN = (GATEWAYS, GATEWAY_CLASSES, HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2)
OF_ROUTER = (HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2, ROLES, ROLE_BINDINGS, SERVICE_ACCOUNTS)
GATEWAY = "gateway"
POOL = "{{ ChildName .ObjectMeta.Name `-inference-pool` }}"
BACKEND: Object = {"group": INFERENCE_POOLS.group, "kind": "InferencePool", "name": POOL, "port": 8000, "weight": 1}
STOPPED: Object = {"metadata": {"annotations": {STOP: "true"}}}
POD: Object = {"containers": [{"name": "main", "image": "server:1"}]}


def rule(path: str) -> Object:
    return {"matches": [{"path": {"type": "PathPrefix", "value": path}}], "backendRefs": [BACKEND]}


def presets(system_namespace: str) -> dict[str, Object]:
    parent = {"group": GATEWAYS.group, "kind": "Gateway", "name": GATEWAY, "namespace": system_namespace}
    model = "/publishers/{{ .ObjectMeta.Namespace }}/models/{{ .Spec.Model.Name }}"
    rules = [rule("/{{ .ObjectMeta.Namespace }}/{{ .ObjectMeta.Name }}"), rule(model)]
    picker = {"containers": [{"name": "main", "image": "picker:1", "ports": [{"name": "grpc", "containerPort": 9002}]}]}
    service = {"kind": "Service", "name": "{{ ChildName .ObjectMeta.Name `-epp-service` }}", "port": {"number": 9002}}
    pool = {"spec": {"targetPorts": [{"number": 8000}], "selector": {"matchLabels": {}}, "endpointPickerRef": service}}
    return {
        "template": {"template": POD},
        "tokenizer": {"router": {"scheduler": {"tokenizer": {"template": POD}}}},
        "router-route": {"router": {"route": {"http": {"spec": {"parentRefs": [parent], "rules": rules}}}}},
        "scheduler": {"router": {"scheduler": {"template": picker, "pool": pool}}},
    }


class Stage:
    """A cluster with a gateway, a namespace for services, and the controller that looks after them."""

    def __init__(self, client: Client, system_namespace: str, namespace: str) -> None:
        self.client, self.system, self.namespace = client, system_namespace, namespace
        self.running: Running | None = None

    async def serve(self, name: str, router: Object, **more: Any) -> None:
        kind = LLM_INFERENCE_SERVICES
        spec = {"model": {"uri": "pvc://claim/model", "name": "model"}, "router": router, **more}
        metadata = {"name": name, "namespace": self.namespace}
        await self.client.create(
            kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        )

    async def edit(self, name: str, change: Object) -> None:
        await self.client.patch(LLM_INFERENCE_SERVICES, name, change, self.namespace)

    async def answer(self) -> None:
        """What gateways and Deployments report once they have seen everything."""
        for deployment in await listed(self.client, DEPLOYMENTS, self.namespace):
            status = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "conditions": [_true("Available")]}
            await self._report(DEPLOYMENTS, deployment, status)
        for route in await listed(self.client, HTTP_ROUTES, self.namespace):
            await self._report(HTTP_ROUTES, route, {"parents": _answers(route, route["spec"]["parentRefs"])})
        parents = [{"group": GATEWAYS.group, "kind": "Gateway", "name": GATEWAY, "namespace": self.system}]
        for resource, field in ((INFERENCE_POOLS, "parents"), (INFERENCE_POOLS_V1ALPHA2, "parent")):
            for pool in await listed(self.client, resource, self.namespace):
                await self._report(resource, pool, {field: _answers(pool, parents)})

    async def _report(self, resource: Resource, obj: Object, status: Object) -> None:
        if (obj.get("status") or {}) != status:
            with contextlib.suppress(NotFound, Conflict):
                await self.client.patch(
                    resource, name_of(obj), {"status": status}, self.namespace, subresource="status"
                )

    async def ready(self, *services: str) -> None:
        async def all_ready() -> bool:
            await self.answer()
            found = [await self.client.get(LLM_INFERENCE_SERVICES, name, self.namespace) for name in services]
            return all(_is_current(service) and _status(service, "Ready") == "True" for service in found)

        await until(all_ready, f"{', '.join(services)} are ready", every=0.1)

    async def quiet(self, *services: str) -> None:
        running, keys = self.running, {Key(self.namespace, name) for name in services}
        assert running is not None
        await until(lambda: running.has_seen_to(keys), "nothing is left to do", every=0.05)

    async def route(self, name: str) -> Object:
        return await self.client.get(HTTP_ROUTES, f"{name}-kserve-route", self.namespace)

    async def of_router(self) -> set[str]:
        """All that exists for routers and schedulers, cluster-wide too."""
        found = {
            f"{resource} {name_of(obj)}"
            for resource in OF_ROUTER
            for obj in await listed(self.client, resource, self.namespace)
            if name_of(obj) != "default"
        }
        of_cluster = await listed(self.client, CLUSTER_ROLE_BINDINGS, "")
        return found | {
            f"{CLUSTER_ROLE_BINDINGS} {name_of(each)}" for each in of_cluster if self.namespace in name_of(each)
        }


def _true(kind: str, **more: Any) -> Object:
    return {"type": kind, "status": "True", "reason": "Fine", "lastTransitionTime": "2026-01-01T00:00:00Z", **more}


def _answers(obj: Object, parents: list[Object]) -> list[Object]:
    generation = obj["metadata"]["generation"]
    conditions = [_true(kind, observedGeneration=generation) for kind in ("Accepted", "ResolvedRefs")]
    return [
        {"parentRef": parent, "controllerName": "example.net/gateway", "conditions": conditions} for parent in parents
    ]


def _status(service: Object, condition: str) -> str:
    found = {each["type"]: each["status"] for each in dig(service, "status", "conditions") or ()}
    return found.get(condition, "")


def _is_current(service: Object) -> bool:
    return bool(dig(service, "status", "observedGeneration") == service["metadata"]["generation"])


async def set_up(client: Client, system_namespace: str) -> None:
    of_cluster = foreign_crd(GATEWAY_CLASSES)
    of_cluster["spec"]["scope"] = "Cluster"
    foreign = [foreign_crd(resource) for resource in FOREIGN if resource != GATEWAY_CLASSES]
    await definitions.install(client, *our_crds(), *foreign, of_cluster)
    with contextlib.suppress(AlreadyExists):
        await client.create(GATEWAY_CLASSES, _object(GATEWAY_CLASSES, "example"))
    gateway = _object(GATEWAYS, GATEWAY, system_namespace)
    listeners = [{"name": "web", "port": 80, "protocol": "HTTP"}]
    await client.create(GATEWAYS, {**gateway, "spec": {"gatewayClassName": "example", "listeners": listeners}})
    status = {"addresses": [{"value": "203.0.113.7"}], "conditions": [_true("Programmed")]}
    await client.patch(GATEWAYS, GATEWAY, {"status": status}, system_namespace, subresource="status")
    ingress = json.dumps({**INGRESS, "kserveIngressGateway": f"{system_namespace}/{GATEWAY}"})
    config = _object(CONFIG_MAPS, "inferenceservice-config", system_namespace)
    await client.create(CONFIG_MAPS, {**config, "data": {"ingress": ingress}})
    for name, spec in presets(system_namespace).items():
        preset = _object(LLM_INFERENCE_SERVICE_CONFIGS, f"kserve-config-llm-{name}", system_namespace)
        await client.create(LLM_INFERENCE_SERVICE_CONFIGS, {**preset, "spec": spec})


def _object(resource: Resource, name: str, namespace: str = "") -> Object:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


@pytest.fixture
async def stage(cluster: Any) -> AsyncIterator[Stage]:
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.connect(kubeconfig.load(cluster.kubeconfig)))
        system, namespace = (f"{part}-{uuid.uuid4().hex[:8]}" for part in ("system", "routed"))
        for name in (system, namespace):
            await client.create(NAMESPACES, _object(NAMESPACES, name))
        await set_up(client, system)
        stage = Stage(client, system, namespace)
        stack.push_async_callback(bury, client, namespace)
        stage.running = await stack.enter_async_context(running(client, system, controller))
        yield stage


def shared_backends(route: Object) -> dict[str, int]:
    """Who shares the traffic for the model, by weight."""
    (shared,) = (each for each in route["spec"]["rules"] if "/publishers/" in each["matches"][0]["path"]["value"])
    return {backend["name"]: backend.get("weight", 1) for backend in shared["backendRefs"]}


async def test_members_of_a_group_share_the_traffic_and_change_their_routes_once_for_one_change(stage: Stage) -> None:
    for name, weight in (("blue", 90), ("green", 10)):
        await stage.serve(name, {"route": {"group": "rollout", "weight": weight}})
    await stage.ready("blue", "green")
    services = {"blue-kserve-workload-svc": 90, "green-kserve-workload-svc": 10}

    async def sharing() -> bool:
        await stage.answer()
        routes = [await stage.route(name) for name in ("blue", "green")]
        return all(shared_backends(route) == services for route in routes)

    await until(sharing, "both routes lead to both services", every=0.1)
    await stage.ready("blue", "green")
    await stage.quiet("blue", "green")
    before = [(await stage.route(name))["metadata"]["generation"] for name in ("blue", "green")]
    await stage.edit("blue", {"spec": {"router": {"route": {"weight": 30}}}})
    services["blue-kserve-workload-svc"] = 30
    await until(sharing, "both routes have the new weight", every=0.1)
    await stage.ready("blue", "green")
    await stage.quiet("blue", "green")
    after = [(await stage.route(name))["metadata"]["generation"] for name in ("blue", "green")]
    assert after == [generation + 1 for generation in before]


async def test_a_member_that_is_deleted_goes_when_no_route_leads_to_it_any_more(stage: Stage) -> None:
    for name in ("blue", "green"):
        await stage.serve(name, {"route": {"group": "rollout", "weight": 50}})
    await stage.ready("blue", "green")

    async def sharing() -> bool:
        await stage.answer()
        return len(shared_backends(await stage.route("blue"))) == 2

    await until(sharing, "blue's route leads to green, too", every=0.1)
    await stage.client.delete(LLM_INFERENCE_SERVICES, "green", stage.namespace)

    async def gone() -> bool:
        names = {name_of(each) for each in await listed(stage.client, LLM_INFERENCE_SERVICES, stage.namespace)}
        return "green" not in names

    await until(gone, "green is gone")
    assert shared_backends(await stage.route("blue")) == {"blue-kserve-workload-svc": 50}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param(
            {"spec": {"router": {"scheduler": None}}}, {f"{HTTP_ROUTES} life-kserve-route"}, id="no scheduler"
        ),
        pytest.param({"spec": {"router": None}}, set(), id="no router"),
        pytest.param(STOPPED, set(), id="stopped"),
        pytest.param(
            {
                "metadata": {"annotations": {STOP: "true"}},
                "spec": {"router": {"gateway": {"refs": [{"name": "none"}]}}},
            },
            set(),
            id="stopped, and its gateway does not exist",
        ),
    ],
)
async def test_nothing_of_a_scheduler_stays(stage: Stage, change: Object, left: set[str]) -> None:
    await stage.serve("life", {"route": {}, "scheduler": {"tokenizer": {}}})
    await stage.ready("life")
    assert len(await stage.of_router()) == 7
    await stage.edit("life", change)

    async def reduced() -> bool:
        return await stage.of_router() == left

    await until(reduced, "only what is asked for is there", every=0.1)
    services = {name_of(each) for each in await listed(stage.client, SERVICES, stage.namespace)}
    assert services <= {"life-kserve-workload-svc"}


async def test_the_certificate_names_the_addresses_of_services(stage: Stage) -> None:
    await stage.serve("life", {"route": {}, "scheduler": {"tokenizer": {}}})
    await stage.ready("life")
    await stage.quiet("life")
    called = ("life-kserve-workload-svc", "life-tokenizer")
    services = [await stage.client.get(SERVICES, name, stage.namespace) for name in called]
    secret = await stage.client.get(SECRETS, "life-kserve-self-signed-certs", stage.namespace)
    certified = read_certificate(base64.b64decode(secret["data"]["tls.crt"])).hosts
    assert {service["spec"]["clusterIP"] for service in services} < certified


async def test_a_gateway_that_comes_later_is_noticed(stage: Stage) -> None:
    await stage.serve("life", {"route": {}, "gateway": {"refs": [{"name": "late"}]}})

    async def waits() -> bool:
        service = await stage.client.get(LLM_INFERENCE_SERVICES, "life", stage.namespace)
        return _status(service, "GatewaysReady") == "False"

    await until(waits, "the missing gateway is reported", every=0.1)
    gateway = _object(GATEWAYS, "late", stage.namespace)
    listeners = [{"name": "web", "port": 8080, "protocol": "HTTP", "hostname": "late.example.org"}]
    await stage.client.create(GATEWAYS, {**gateway, "spec": {"gatewayClassName": "example", "listeners": listeners}})
    status = {"addresses": [{"value": "203.0.113.8"}], "conditions": [_true("Programmed")]}
    await stage.client.patch(GATEWAYS, "late", {"status": status}, stage.namespace, subresource="status")
    await stage.ready("life")
    service = await stage.client.get(LLM_INFERENCE_SERVICES, "life", stage.namespace)
    assert service["status"]["url"] == f"http://late.example.org:8080/{stage.namespace}/life"


async def test_an_edit_of_a_schedulers_configuration_is_noticed_although_nobody_tells(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ConfigMaps without our label are not watched; they are read again every few minutes, here at once."""
    monkeypatch.setattr(fold, "REREAD", 0.2)
    metadata = {"name": "picking", "namespace": stage.namespace}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"epp": "plugins: [{type: first}]"},
    }
    await stage.client.create(CONFIG_MAPS, config)
    await stage.serve("llama", {"route": {}, "scheduler": {"config": {"ref": {"name": "picking", "key": "epp"}}}})
    await stage.ready("llama")
    await stage.client.patch(CONFIG_MAPS, "picking", {"data": {"epp": "plugins: [{type: second}]"}}, stage.namespace)

    async def is_applied() -> bool:
        picker = await stage.client.get(DEPLOYMENTS, "llama-kserve-router-scheduler", stage.namespace)
        return any("second" in argument for argument in picker["spec"]["template"]["spec"]["containers"][0]["args"])

    await until(is_applied, "the scheduler has the new configuration", every=0.1)

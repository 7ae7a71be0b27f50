"""Whatever shapes an LLMInferenceService had before, it ends as its last spec says, and leaves nothing behind.

No webhooks take part, so services are written as the defaulter would leave them.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import AsyncIterator
from functools import cache, partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests import definitions
from tests.burial import bury
from tests.cluster.lifecycles.stage import INGRESS, Running, foreign_crd, running
from tests.waiting import until

from isvc.api.annotations import DEVICE_CLASS, STOP
from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.watches import controller
from isvc.kube.errors import Conflict, NotFound
from isvc.kube.objects import Object, deep_copy, dig, name_of
from isvc.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NAMESPACES,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from isvc.serving.thirdparty import LEADER_WORKER_SETS, SCALED_OBJECTS
from isvc.toolkit.client import Client, kubeconfig

CHILDREN = (
    DEPLOYMENTS,
    LEADER_WORKER_SETS,
    SERVICES,
    SECRETS,
    ROLES,
    ROLE_BINDINGS,
    HORIZONTAL_POD_AUTOSCALERS,
    SCALED_OBJECTS,
    RESOURCE_CLAIM_TEMPLATES,
)
POD: Object = {"containers": [{"name": "main", "image": "vllm:1"}]}
ROUTED: Object = {**POD, "initContainers": [{"name": "llm-d-routing-sidecar", "image": "sidecar:1"}]}
PRESETS: dict[str, Object] = {
    "template": {"template": POD},
    "decode-template": {"template": ROUTED},
    "prefill-template": {"prefill": {"template": POD}},
    "worker-data-parallel": {"template": POD, "worker": POD},
    "decode-worker-data-parallel": {"template": ROUTED, "worker": POD},
    "prefill-worker-data-parallel": {"prefill": {"template": POD, "worker": POD}},
}
GROUP: Object = {"parallelism": {"data": 4, "dataLocal": 2}, "worker": {"containers": []}}
KEDA: Object = {"maxReplicas": 4, "keda": {"triggers": [{"type": "cpu", "metadata": {"value": "60"}}]}, "wva": None}
EDITS: tuple[Object, ...] = (
    {"spec": GROUP},
    {"spec": {"worker": None, "parallelism": None}},
    {"spec": {"prefill": {"worker": None}}},
    {"spec": {"prefill": GROUP}},
    {"spec": {"prefill": None}},
    {"spec": {"scaling": {"maxReplicas": 3, "wva": {"hpa": {}}, "keda": None}}},
    {"spec": {"scaling": KEDA}},
    {"spec": {"scaling": None}},
    {"spec": {"labels": {"team": "a"}, "annotations": {"note": "b"}}},
    {"spec": {"labels": None, "annotations": None}},
    {"spec": {"model": {"uri": "pvc://claim/other"}}},
    {"spec": {"model": {"lora": {"adapters": [{"name": "sql", "uri": "pvc://claim/sql"}]}}}},
    {"spec": {"model": {"lora": None}}},
    {"metadata": {"annotations": {DEVICE_CLASS: "gpu.example.com"}}},
    {"metadata": {"annotations": {DEVICE_CLASS: "tpu.example.com"}}},
    {"metadata": {"annotations": {DEVICE_CLASS: None}}},
    {"metadata": {"annotations": {STOP: "true"}}},
    {"metadata": {"annotations": {STOP: None}}},
)
HAPPENINGS = st.one_of(
    st.tuples(st.just("edit"), st.sampled_from(EDITS)),
    st.tuples(st.just("delete a child"), st.integers(0, 19)),
    st.tuples(st.sampled_from(["everything is healthy", "restart"]), st.none()),
)
LIVES = settings(
    max_examples=4,
    suppress_health_check=list(HealthCheck),
    database=None,
    phases=[Phase.generate],  # a life takes seconds: report the first bad one as it was
)


class Life:
    """A service in one namespace, all that happens to it, and the controller that looks after it."""

    def __init__(self, client: Client, system_namespace: str) -> None:
        self.client, self.system = client, system_namespace
        self._stack = contextlib.AsyncExitStack()
        self.running: Running | None = None

    async def start(self) -> None:
        self.running = await self._stack.enter_async_context(running(self.client, self.system, controller))

    async def stop(self) -> None:
        await self._stack.aclose()
        self._stack = contextlib.AsyncExitStack()

    async def happen(self, what: str, detail: Any, namespace: str) -> None:
        if what == "edit":
            await self.client.patch(LLM_INFERENCE_SERVICES, "life", detail, namespace)
        elif what == "delete a child":
            if found := await self._children(namespace):
                resource, child = found[detail % len(found)]
                with contextlib.suppress(NotFound, Conflict):
                    await self.client.delete(resource, name_of(child), namespace)
        elif what == "everything is healthy":
            await self.make_ready(namespace)
        elif what == "restart":
            await self.stop()
            await self.start()

    async def make_ready(self, namespace: str) -> None:
        """Report health, as the controllers of Deployments, LeaderWorkerSets and autoscalers would."""
        healthy = {
            DEPLOYMENTS: ("Available",),
            LEADER_WORKER_SETS: ("Available",),
            HORIZONTAL_POD_AUTOSCALERS: ("AbleToScale", "ScalingActive"),
            SCALED_OBJECTS: ("Ready", "Active", "Fallback", "Paused"),
        }
        for resource, child in await self._children(namespace):
            if resource in healthy and not dig(child, "status", "conditions"):
                conditions = [_true(kind) for kind in healthy[resource]]
                status: Object = {"conditions": conditions}
                if resource == HORIZONTAL_POD_AUTOSCALERS:
                    status["desiredReplicas"] = 1
                with contextlib.suppress(NotFound, Conflict):
                    await self.client.patch(
                        resource, name_of(child), {"status": status}, namespace, subresource="status"
                    )

    async def _children(self, namespace: str) -> list[tuple[Resource, Object]]:
        return [(resource, child) for resource in CHILDREN for child in await listed(self.client, resource, namespace)]

    async def end_alike(self, lived: str, fresh: str) -> None:
        seen: list[Object] = []

        async def alike() -> bool:
            for namespace in (lived, fresh):
                await self.make_ready(namespace)
            seen[:] = [await picture(self.client, namespace) for namespace in (lived, fresh)]
            return seen[0] == seen[1] and seen[0]["ready"] is not None

        try:
            await until(alike, "both are alike", every=0.25)
        except AssertionError:
            assert seen[0] == seen[1]
            raise


async def listed(client: Client, resource: Resource, namespace: str) -> list[Object]:
    return list((await client.list(resource, namespace)).items)


async def picture(client: Client, namespace: str) -> Object:
    """The children and conditions of a service, whatever its namespace is called and however it got there."""
    seen: Object = {}
    for resource in (*CHILDREN, SERVICE_ACCOUNTS):
        for child in await listed(client, resource, namespace):
            if name_of(child) != "default":
                name = name_of(child) if resource != RESOURCE_CLAIM_TEMPLATES else "the only one"
                seen[f"{resource.kind} {name}"] = json.loads(_plain(child).replace(namespace, "here"))
    service = await client.get(LLM_INFERENCE_SERVICES, "life", namespace)
    found = {each["type"]: (each["status"], each.get("reason")) for each in dig(service, "status", "conditions") or ()}
    is_final = found.get("Ready", ("",))[0] == "True" or found.get("Ready") == ("False", "Stopped")
    return {**seen, "conditions": found, "ready": found.get("Ready") if is_final else None}


def _plain(child: Object) -> str:
    """Without what may depend on the past: addresses, keys, numbers of replicas, and selectors with their labels."""
    child = deep_copy(child)
    child.pop("status", None)
    child["metadata"] = {key: child["metadata"][key] for key in ("name",)}
    spec = child.get("spec") or {}
    for field in ("clusterIP", "clusterIPs", "replicas", "selector"):
        spec.pop(field, None)
    if child["kind"] == "Secret":
        child["data"] = sorted(child["data"])
    if child["kind"] == "Deployment":
        spec["template"]["metadata"].get("labels", {}).pop("llm-d.ai/role", None)
    if child["kind"] == "ResourceClaimTemplate":
        child["metadata"] = {}
    for claim in dig(spec, "template", "spec", "resourceClaims") or ():
        claim.pop("resourceClaimTemplateName", None)
    for part in ("leaderTemplate", "workerTemplate"):
        for claim in dig(spec, "leaderWorkerTemplate", part, "spec", "resourceClaims") or ():
            claim.pop("resourceClaimTemplateName", None)
    return json.dumps(child, sort_keys=True)


def _true(kind: str) -> Object:
    return {"type": kind, "status": "True", "reason": "Fine", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def service(namespace: str, **more: Any) -> Object:
    return {
        "apiVersion": LLM_INFERENCE_SERVICES.api_version,
        "kind": LLM_INFERENCE_SERVICES.kind,
        "metadata": {"name": "life", "namespace": namespace, **more.pop("metadata", {})},
        "spec": {"model": {"uri": "pvc://claim/model", "name": "life"}, **more},
    }


@cache
def our_crds() -> list[Object]:
    return [definitions.ours(LLM_INFERENCE_SERVICES), definitions.ours(LLM_INFERENCE_SERVICE_CONFIGS)]


async def set_up(client: Client, system_namespace: str) -> None:
    await definitions.install(client, *our_crds(), foreign_crd(LEADER_WORKER_SETS), foreign_crd(SCALED_OBJECTS))
    metadata = {"name": "inferenceservice-config", "namespace": system_namespace}
    data = {"ingress": json.dumps(INGRESS)}
    await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    for name, spec in PRESETS.items():
        metadata = {"name": f"kserve-config-llm-{name}", "namespace": system_namespace}
        kind = LLM_INFERENCE_SERVICE_CONFIGS
        preset = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
        await client.create(kind, preset)


@contextlib.asynccontextmanager
async def begun(cluster: Any) -> AsyncIterator[tuple[Life, str, str]]:
    """A life that has begun, the namespace that it is led in, and another for one to compare it with."""
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client.connect(kubeconfig.load(cluster.kubeconfig)))
        system, lived, fresh = (f"{part}-{uuid.uuid4().hex[:8]}" for part in ("system", "lived", "fresh"))
        for name in (system, lived, fresh):
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        await set_up(client, system)
        life = Life(client, system)
        stack.push_async_callback(bury, client, lived, fresh)
        stack.push_async_callback(life.stop)
        await life.start()
        await client.create(LLM_INFERENCE_SERVICES, service(lived))
        yield life, lived, fresh


async def ends_like_a_fresh_one(life: Life, lived: str, fresh: str) -> None:
    last = await life.client.get(LLM_INFERENCE_SERVICES, "life", lived)
    metadata = {"annotations": last["metadata"].get("annotations") or {}}
    await life.client.create(LLM_INFERENCE_SERVICES, service(fresh, metadata=metadata, **last["spec"]))
    await life.end_alike(lived, fresh)


@pytest.mark.filterwarnings("ignore")
@LIVES
@given(happenings=st.lists(HAPPENINGS, min_size=4, max_size=12))
async def test_a_service_ends_as_its_last_spec_says(cluster: Any, happenings: list[tuple[str, Any]]) -> None:
    async with begun(cluster) as (life, lived, fresh):
        for what, detail in happenings:
            await life.happen(what, detail, lived)
        await ends_like_a_fresh_one(life, lived, fresh)


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([{"spec": {"prefill": {}}}], id="prefill is added on one node"),
        pytest.param([{"spec": {"prefill": {}}}, {"spec": {"prefill": None}}], id="prefill comes and goes"),
        pytest.param([{"spec": {"labels": {"a": "1"}}}, {"spec": {"labels": {"a": "2"}}}], id="labels change"),
        pytest.param([{"spec": {**GROUP, "prefill": {}}}, {"spec": {"worker": None}}], id="groups become single pods"),
        pytest.param(
            [{"metadata": {"annotations": {DEVICE_CLASS: kind}}} for kind in ("a.example.com", "b.example.com")],
            id="another class of devices",
        ),
    ],
)
async def test_changes_that_touch_what_is_immutable_succeed(cluster: Any, edits: list[Object]) -> None:
    async with begun(cluster) as (life, lived, fresh):
        for edit in edits:
            await until(partial(_is_ready, life, lived), "it is ready")
            await life.happen("edit", edit, lived)
        await ends_like_a_fresh_one(life, lived, fresh)


async def _is_ready(life: Life, namespace: str) -> bool:
    await life.make_ready(namespace)
    found = await picture(life.client, namespace)
    return found["ready"] is not None

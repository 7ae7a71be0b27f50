"""Whatever a service is planned from may be edited at any moment of its creation, and the edit arrives.

Each case creates an object and makes one edit at its first request to the API server, then at its second, and so on.
In the end everything is as if the edit had been there from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    GROUP,
    INFERENCE_GRAPHS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
    SERVING_RUNTIMES,
)
from isvc.insight.rendering.renderer import Cluster
from isvc.insight.rendering.shipped import with_section
from isvc.insight.simulation.server import MemoryServer, Place
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.errors import Conflict
from isvc.kube.objects import Object, deep_copy
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, NODES, PERSISTENT_VOLUMES, SECRETS, SERVICE_ACCOUNTS, Resource
from isvc.programs.options import Options
from isvc.serving.shipped import shipped_presets
from isvc.toolkit.client.transport import Call

NAMESPACE = "models"
SKLEARN = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://a/b"}
STEPS = {"root": {"routerType": "Sequence", "steps": [{"serviceName": "target"}]}}


def document(resource: Resource, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE} if resource.namespaced else {"name": name}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def runtime(resource: Resource) -> Object:
    container = {"name": "kserve-container", "image": "server:1"}
    formats = [{"name": "own", "version": "1", "autoSelect": True, "priority": 5}]
    return document(resource, "own", {"supportedModelFormats": formats, "containers": [container]})


def own_format(**model: str) -> Object:
    return {"predictor": {"model": {"modelFormat": {"name": "own"}, "storageUri": "gs://a/b", **model}}}


@dataclass(frozen=True)
class Case:
    """What is there, what is created, and what is edited meanwhile."""

    created: tuple[Resource, Object]
    edited: tuple[Resource, str, str]
    edit: Callable[[Object], Object]
    there: tuple[tuple[Resource, Object], ...] = ()
    comes: bool = False  # what is edited is not there before


def set_image(obj: Object) -> Object:
    obj["spec"]["containers"][0]["image"] = "server:2"
    return obj


def set_container_image(obj: Object) -> Object:
    obj["spec"]["container"]["image"] = "initializer:2"
    return obj


def set_pod_image(obj: Object) -> Object:
    obj["spec"]["template"]["containers"][0]["image"] = "server:2"
    return obj


def set_protocol(obj: Object) -> Object:
    obj["spec"]["predictor"]["model"]["protocolVersion"] = "v2"
    return obj


def set_runtime_protocol(obj: Object) -> Object:
    obj["spec"]["protocolVersions"] = ["v2"]
    return obj


def preset(name: str) -> Object:
    shipped = deep_copy(next(each for each in shipped_presets() if each["metadata"]["name"] == name))
    return {**shipped, "metadata": {**shipped["metadata"], "namespace": "kserve"}}


def with_tokenizer_beside(scheduler: Object) -> Object:
    """The scheduler of KServe 0.20, which knows no preset for a tokenizer."""
    pod = scheduler["spec"]["router"]["scheduler"]["template"]
    pod["containers"].append({"name": "tokenizer", "image": "tokenizer:1"})
    return scheduler


def node(name: str) -> Object:
    conditions = [{"type": "Ready", "status": "True"}]
    return NODES.typed({"metadata": {"name": name, "labels": {"name": name}}, "status": {"conditions": conditions}})


def group_of(name: str) -> Object:
    """A group whose one node has this name."""
    term = {"matchExpressions": [{"key": "name", "operator": "In", "values": [name]}]}
    volume = {"hostPath": {"path": "/models"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    spec = {"storageLimit": "1Gi", "persistentVolumeSpec": volume, "persistentVolumeClaimSpec": {}}
    return document(LOCAL_MODEL_NODE_GROUPS, "disks", spec)


SCORER = {"plugins": [{"type": "precise-prefix-cache-scorer"}]}
ROLLOUT = {"defaultRollout": {"maxSurge": "1", "maxUnavailable": "1"}}
CONFIG = (CONFIG_MAPS, "kserve", "inferenceservice-config")
TARGET = document(INFERENCE_SERVICES, "target", own_format(runtime="own"))
GRAPH = (INFERENCE_GRAPHS, document(INFERENCE_GRAPHS, "it", {"nodes": STEPS}))
CASES = {
    "a runtime": Case(
        (INFERENCE_SERVICES, document(INFERENCE_SERVICES, "it", own_format())),
        (SERVING_RUNTIMES, NAMESPACE, "own"),
        set_image,
        ((SERVING_RUNTIMES, runtime(SERVING_RUNTIMES)),),
    ),
    "a runtime of the cluster": Case(
        (INFERENCE_SERVICES, document(INFERENCE_SERVICES, "it", own_format())),
        (CLUSTER_SERVING_RUNTIMES, "", "own"),
        set_image,
        ((CLUSTER_SERVING_RUNTIMES, runtime(CLUSTER_SERVING_RUNTIMES)),),
    ),
    "the runtime of a canary": Case(
        (
            INFERENCE_SERVICES,
            document(
                INFERENCE_SERVICES,
                "it",
                {
                    "predictor": {"model": SKLEARN},
                    "canary": [
                        {
                            "trafficPercent": 50,
                            "predictor": {"name": "new", "model": own_format(runtime="own")["predictor"]["model"]},
                        }
                    ],
                },
            ),
        ),
        (SERVING_RUNTIMES, NAMESPACE, "own"),
        set_image,
        ((SERVING_RUNTIMES, runtime(SERVING_RUNTIMES)),),
    ),
    "the configuration": Case(
        (INFERENCE_SERVICES, document(INFERENCE_SERVICES, "it", {"predictor": {"model": SKLEARN}})),
        CONFIG,
        lambda config: with_section(config, "deploy", deploymentRolloutStrategy=ROLLOUT),
    ),
    "a storage container": Case(
        (
            INFERENCE_SERVICES,
            document(
                INFERENCE_SERVICES,
                "it",
                {"predictor": {"model": {"modelFormat": {"name": "sklearn"}}, "storageUris": [{"uri": "gs://a/b"}]}},
            ),
        ),
        (CLUSTER_STORAGE_CONTAINERS, "", "default"),
        set_container_image,
    ),
    "a graph's configuration": Case(
        GRAPH,
        CONFIG,
        lambda config: with_section(config, "router", image="router:2"),
        ((SERVING_RUNTIMES, runtime(SERVING_RUNTIMES)), (INFERENCE_SERVICES, TARGET)),
    ),
    "a graph's target": Case(
        GRAPH,
        (INFERENCE_SERVICES, NAMESPACE, "target"),
        set_protocol,
        ((SERVING_RUNTIMES, runtime(SERVING_RUNTIMES)), (INFERENCE_SERVICES, TARGET)),
    ),
    "the runtime of a graph's target": Case(
        GRAPH,
        (SERVING_RUNTIMES, NAMESPACE, "own"),
        set_runtime_protocol,
        ((SERVING_RUNTIMES, runtime(SERVING_RUNTIMES)), (INFERENCE_SERVICES, TARGET)),
    ),
    "a preset": Case(
        (LLM_INFERENCE_SERVICES, document(LLM_INFERENCE_SERVICES, "it", {"model": {"uri": "pvc://claim/m"}})),
        (LLM_INFERENCE_SERVICE_CONFIGS, "kserve", "kserve-config-llm-template"),
        set_pod_image,
    ),
    "a preset that comes with an upgrade": Case(
        (
            LLM_INFERENCE_SERVICES,
            document(
                LLM_INFERENCE_SERVICES,
                "it",
                {"model": {"uri": "hf://a/b"}, "router": {"scheduler": {"config": {"inline": SCORER}}}},
            ),
        ),
        (LLM_INFERENCE_SERVICE_CONFIGS, "kserve", "kserve-config-llm-tokenizer"),
        lambda tokenizer: tokenizer,
        ((LLM_INFERENCE_SERVICE_CONFIGS, with_tokenizer_beside(preset("kserve-config-llm-scheduler"))),),
        comes=True,
    ),
    "a node group": Case(
        (
            LOCAL_MODEL_CACHES,
            document(
                LOCAL_MODEL_CACHES,
                "it",
                {"sourceModelUri": "gs://a/b", "modelSize": "1Gi", "nodeGroups": ["disks"]},
            ),
        ),
        (LOCAL_MODEL_NODE_GROUPS, "", "disks"),
        lambda group: {**group, "spec": group_of("b")["spec"]},
        ((LOCAL_MODEL_NODE_GROUPS, group_of("a")),),
    ),
    "an LLM's configuration": Case(
        (LLM_INFERENCE_SERVICES, document(LLM_INFERENCE_SERVICES, "it", {"model": {"uri": "hf://a/b"}})),
        CONFIG,
        lambda config: with_section(config, "ingress", enableLLMInferenceServiceTLS=True),
    ),
}


class Editing(MemoryServer):
    """Somebody makes an edit while a request is on its way."""

    edit: Callable[[], None] | None = None
    at = -1
    requests = 0

    async def exchange(self, call: Call) -> bytes:
        if self.requests == self.at and self.edit is not None:
            self.edit()
        self.requests += 1
        return await super().exchange(call)


async def simulation_of(case: Case) -> Simulation:
    cluster = Cluster(Options())
    cluster.install([], [], mode="Standard")
    simulation = cluster.simulation
    simulation.seed((NODES, node(name)) for name in ("a", "b"))
    for resource, obj in case.there:
        await simulation.apply(resource, deep_copy(obj))
    if case.comes:
        resource, namespace, name = case.edited
        simulation.objects.remove(resource, name, namespace)
    await simulation.settle_ready()
    return simulation


def edit(simulation: Simulation, case: Case) -> None:
    resource, namespace, name = case.edited
    live = simulation.objects.get(resource, name, namespace)
    assert (live is None) is case.comes
    changed = case.edit(preset(name) if live is None else deep_copy(live))
    assert changed != live
    metadata = {**changed["metadata"], "generation": changed["metadata"].get("generation", 1) + 1}
    author, simulation.server.author = simulation.server.author, None
    simulation.server.put(resource, {**changed, "metadata": metadata})
    simulation.server.author = author


async def create(case: Case, *, at: int | None) -> tuple[dict[Place, Object], int]:
    """The children in the end, and how many requests it took; the edit comes with request `at`, or after all."""
    simulation = await simulation_of(case)
    server = simulation.server
    server.__class__ = Editing
    assert isinstance(server, Editing)
    server.edit, server.at = lambda: edit(simulation, case), -1 if at is None else at
    if at is None:
        edit(simulation, case)
        await simulation.settle_ready()
    notify = server.changed
    # What controllers write does not bring their objects back, and nothing becomes ready, which would. The list of a
    # node is made by the controller of caches, for another.
    server.changed = lambda *it: notify(*it) if server.author is None or it[0] == LOCAL_MODEL_NODES else None
    resource, obj = case.created
    await simulation.apply(resource, deep_copy(obj))
    await simulation.settle()
    if server.requests == at:
        server.at = -1
        edit(simulation, case)
        await simulation.settle()
    await retry(simulation)
    return dict(children(simulation)), server.requests


async def retry(simulation: Simulation) -> None:
    """A write that met a conflict is tried again, as controllers do."""
    crashes, simulation.crashes = simulation.crashes, []
    for crash in crashes:
        assert isinstance(crash.error, Conflict)
        simulation.enqueue_all()
        await simulation.settle()
    assert not simulation.crashes


CREDENTIALS = {"AWS_ACCESS_KEY_ID": "aWQ=", "AWS_SECRET_ACCESS_KEY": "a2V5"}


def secret(endpoint: str) -> Object:
    metadata = {"name": "s3", "namespace": NAMESPACE, "annotations": {"serving.kserve.io/s3-endpoint": endpoint}}
    return SECRETS.typed({"metadata": metadata, "data": CREDENTIALS})


async def endpoint_of(name: str, simulation: Simulation, *, at: int) -> tuple[str, int]:
    """Creates an LLM, and edits its Secret at a request: whom its pods ask in the end, how many requests it took."""
    server = simulation.server
    server.__class__ = Editing
    assert isinstance(server, Editing)
    server.requests, server.at = 0, at
    server.edit = lambda: simulation.seed([(SECRETS, secret("new"))])
    await simulation.apply(
        LLM_INFERENCE_SERVICES, document(LLM_INFERENCE_SERVICES, name, {"model": {"uri": "s3://a/b"}})
    )
    await simulation.settle_ready()
    deployment = simulation.objects.get(DEPLOYMENTS, f"{name}-kserve", NAMESPACE) or {}
    (initializer,) = deployment["spec"]["template"]["spec"]["initContainers"]
    return next(each["value"] for each in initializer["env"] if each["name"] == "S3_ENDPOINT"), server.requests


def children(simulation: Simulation) -> Iterator[tuple[Place, Object]]:
    """Yields what follows edits: a volume of a cache stays as it was made, and a list of a node stays, empty."""
    for resource, namespace, name in simulation.server.written:
        is_child = resource == LOCAL_MODEL_NODES or (resource.group != GROUP and resource != PERSISTENT_VOLUMES)
        live = simulation.objects.get(resource, name, namespace) if is_child else None
        if live is not None and live.get("spec") != {"localModels": []}:
            yield (resource, namespace, name), live.get("spec") or {}


@pytest.mark.parametrize("case", CASES)
async def test_an_edit_arrives_at_whichever_step_of_a_creation_it_comes(case: str) -> None:
    expected, requests = await create(CASES[case], at=None)
    assert expected
    without_edit, requests = await create(CASES[case], at=10_000)
    assert without_edit != expected, "the edit makes a difference"
    for step in range(requests + 1):
        found, _ = await create(CASES[case], at=step)
        assert found == expected, f"edited at request {step} of {requests}"


async def test_an_edit_of_a_secret_arrives_until_the_service_is_ready_though_nobody_watches_it() -> None:
    cluster = Cluster(Options())
    cluster.install([], [])
    simulation = cluster.simulation
    account = {"metadata": {"name": "default", "namespace": NAMESPACE}, "secrets": [{"name": "s3"}]}
    simulation.seed([(SERVICE_ACCOUNTS, SERVICE_ACCOUNTS.typed(account)), (SECRETS, secret("old"))])
    await endpoint_of("first", simulation, at=10_000)  # presets get their statuses with it
    endpoint, requests = await endpoint_of("unedited", simulation, at=10_000)
    assert endpoint == "old"
    for step in range(requests):
        simulation.seed([(SECRETS, secret("old"))])
        endpoint, _ = await endpoint_of(f"edited-{step}", simulation, at=step)
        assert endpoint == "new", f"edited at request {step} of {requests}"

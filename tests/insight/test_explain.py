"""Ways to fail, side by side on one API server: the first line of `isvc explain` names the cause of each.

The controllers of both managers run; what a kubelet, a ReplicaSet controller or a gateway would report is written here.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.programs import SYSTEM, controllers
from tests.commands import run_isvc
from tests.insight.failures.manifests import CONFIG, GATEWAY, GOING, HERE
from tests.insight.failures.webhooks import denying_webhook
from tests.insight.failures.world import World
from tests.servers import Cluster, discard, start

from isvc.api.annotations import DISABLE_AUTO_UPDATE, STOP
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, INFERENCE_SERVICES
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES
from isvc.programs import isvc_manager, llmisvc_manager
from isvc.serving.thirdparty import GATEWAYS
from isvc.toolkit.client import Client, PatchKind, kubeconfig

# What the first line of `isvc explain` has to say, for each failure that is seeded below.
EXPECTED = {
    "bad-uri": "StorageUri [ftp://models/iris] is not supported",
    "missing-secret": 'secret "token" not found',
    "wrong-credentials": "s3://models/iris: AccessDenied",
    "no-runtime": "no runtime found to support predictor with model type: willow",
    "two-runtimes": "was taken for format birch, and so might birch-",
    "does-not-load": "exit code 1: ModuleNotFoundError: No module named 'sklearn.old'",
    "crash-loop": "ends with exit code 139 (restarted 7 times)",
    "memory": "used more memory than its limit of 1Gi and was killed (OOMKilled)",
    "probe": "runs but is not ready: Readiness probe failed: connection refused",
    "image": "image example.com/none:1 of container kserve-container of pod image-predictor-1-a cannot be pulled",
    "quota": "because ResourceQuota tight is used up",
    "other-webhook": "because webhook policy.example.com denies it",
    "our-webhook-down": "because webhook inferenceservice.kserve-webhook-server.pod-mutator does not answer",
    "route-refused": "HTTPRoute route-refused-predictor is refused (NoMatchingListenerHostname)",
    "gateway-without-address": f"Gateway {SYSTEM}/front has no address",
    "gateway-missing": f"Gateway {SYSTEM}/front, which HTTPRoute routed",
    "no-metrics": "HorizontalPodAutoscaler no-metrics-predictor does not scale: no metrics known",
    "no-keda": 'no matches for kind "ScaledObject"',
    "no-knative": "It is not possible to use Knative deployment mode when Knative Services are not available",
    "bad-config": "ConfigMap inferenceservice-config: deploy is not JSON",
    "template": "presets cannot be combined",
    "base-ref": "nowhere",
    "taken": "Deployment taken-predictor exists already and it was not created for this service",
    "terminating": f"namespace {GOING} is being deleted",
    "stopped": f"it is stopped by its annotation {STOP}",
    "orphan": "InferenceService taken: Inference Service predictor is not configured for multi-model serving",
    "runtime-edited": "no-metrics-predictor (spec.template.spec.containers[kserve-container].image) would change",
    "runtime-edited-and-pinned": f"ClusterServingRuntime oak, as {DISABLE_AUTO_UPDATE} asks",
    "config-edited": "HTTPRoute no-metrics (spec.hostnames)",
}


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An API server of its own: the configuration, the gateway and webhooks are everybody's."""
    running = start(request.config.getoption("--cluster"), Path(tmp_path_factory.mktemp("explain")))
    yield running
    discard(running)


async def explain(server: Cluster, *words: str) -> dict[str, str]:
    """The first line for each service that the command explains."""
    kinds = ("InferenceService ", "LLMInferenceService ", "TrainedModel ")
    lines = [line for line in (await explain_all(server, *words)).splitlines() if line.startswith(kinds)]
    return {line.split()[1].partition("/")[2]: line for line in lines}


async def explain_all(server: Cluster, *words: str) -> str:
    done = await asyncio.to_thread(run_isvc, "explain", *words, "--kubeconfig", str(server.kubeconfig))
    assert done.stderr == ""
    return done.stdout


async def test_the_first_line_names_the_cause(server: Cluster) -> None:
    async with Client.connect(kubeconfig.load(server.kubeconfig)) as client:
        world = World(client)
        await world.set_up()
        async with (
            controllers(client, isvc_manager.PROGRAM),
            controllers(client, llmisvc_manager.PROGRAM),
            denying_webhook() as denying,
        ):
            await world.seed(denying)
            found = await explain(server, "-n", HERE)
            for ready in ("two-runtimes", "no-metrics"):
                found |= await explain(server, ready, "-n", HERE)
            await world.move_out(GATEWAY)
            found["gateway-without-address"] = (await explain(server, "routed", "-n", HERE))["routed"]
            await client.delete(GATEWAYS, "front", SYSTEM)
            found["gateway-missing"] = (await explain(server, "routed", "-n", HERE))["routed"]
            await client.delete(NAMESPACES, GOING)
            found |= await explain(server, "-n", GOING)
            await configure(client, "deploy", "{no json")
            found["bad-config"] = (await explain(server, "routed", "-n", HERE))["routed"]
            await configure(client, "deploy", json.dumps(CONFIG["deploy"]))
        found |= await edits(client, server)
    missed = {name: (words, found.get(name)) for name, words in EXPECTED.items() if words not in found.get(name, "")}
    assert not missed, json.dumps(missed, indent=1)
    assert len(EXPECTED) == 29


async def configure(client: Client, section: str, text: str) -> None:
    await client.patch(CONFIG_MAPS, "inferenceservice-config", {"data": {section: text}}, SYSTEM)


async def edits(client: Client, server: Cluster) -> dict[str, str]:
    """What is said of a ready service whose runtime or configuration is edited while no controller runs."""
    found: dict[str, str] = {}
    image = {"op": "replace", "path": "/spec/containers/0/image", "value": "server:2"}
    await client.patch(CLUSTER_SERVING_RUNTIMES, "oak", [image], kind=PatchKind.JSON)
    words = ("no-metrics", "-n", HERE, "--system-namespace", SYSTEM)
    found["runtime-edited"] = await explain_all(server, *words)
    pin = {"metadata": {"annotations": {DISABLE_AUTO_UPDATE: "true"}}}
    await client.patch(INFERENCE_SERVICES, "no-metrics", pin, HERE)
    found["runtime-edited-and-pinned"] = await explain_all(server, *words)
    ingress = json.dumps({**CONFIG["ingress"], "ingressDomain": "elsewhere.org"})
    await configure(client, "ingress", ingress)
    found["config-edited"] = await explain_all(server, *words)
    return found

"""What the chart and the controllers put into users' pods runs where PodSecurity enforces `restricted`.

Pods of each of the chart's runtimes, and the chart's own, are sent to an API server, to a namespace that is labelled
so, as a dry run; `tests/recorded_cluster` sends those of all recordings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from isvc import render
from isvc.cli import chart
from isvc.kube.errors import Forbidden
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import NAMESPACES, PODS
from isvc.toolkit.client import Client

RUNTIMES = Path(__file__).parents[2] / "charts" / "isvc" / "files" / "runtimes"
STANDARD = {"serving.kserve.io/deploymentMode": "Standard", "serving.kserve.io/autoscalerClass": "none"}

ESCALATION, CAPABILITIES = "allowPrivilegeEscalation != false", "unrestricted capabilities"
ROOT, SECCOMP = "runAsNonRoot != true", "seccompProfile"
ALL: Final = {ESCALATION, CAPABILITIES, ROOT, SECCOMP}

Refusals = dict[str, set[str]]
"""Container or volume -> what pods are refused for because of it."""

OF_THE_CHART: Final[dict[str, Refusals]] = {
    "vllmserver-predictor": {"kserve-container": {ROOT}, "agent": {ROOT}},  # vLLM's image runs as root
    # Ray asks for nothing, and its containers share memory between nodes.
    "huggingfaceserver-multinode-predictor": {"kserve-container": ALL},
    "huggingfaceserver-multinode-predictor-worker": {"worker-container": ALL},
    # These two are as KServe's, or what runs would restart when it is taken over. An LLM's template can say more about
    # its init container storage-initializer.
    "graph": {"graph": {SECCOMP}},
    "llm-kserve": {"storage-initializer": ALL},
    # Model servers on several nodes share memory over InfiniBand.
    "spread-kserve-mn": {"main": {CAPABILITIES}},
    "spread-kserve-mn-worker": {"main": {CAPABILITIES}},
    "spread-kserve-mn-prefill": {"main": {CAPABILITIES}},
    "spread-kserve-mn-prefill-worker": {"main": {CAPABILITIES}},
    "halves-tokenizer": {"main": {ROOT}},  # its image runs as root
}
"""Pod -> why it is refused."""

CONTROLLERS: Final = {"Deployment", "DaemonSet"}
WITH_CACHES: Final = {"localmodel": {"enabled": True}}
PROGRAMS: Final[dict[str, Refusals]] = {
    # It keeps the models of a node, in a folder of that node.
    "kserve-localmodelnode-agent": {"models": {"restricted volume types"}},
}
"""Pod of the chart itself -> why it is refused."""


@pytest.fixture
async def restricted(client: Client, namespace: str) -> str:
    """A namespace in which `restricted` is enforced."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await client.patch(NAMESPACES, namespace, {"metadata": {"labels": labels}})
    return namespace


async def refusals(client: Client, namespace: str, spec: Object) -> Refusals:
    """Returns why the API server would not take a pod, by the containers and volumes that are the reason."""
    path = PODS.path(namespace)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried"}, "spec": spec}
    try:
        await client.request("POST", path, params={"dryRun": "All"}, body=pod)
    except Forbidden as refused:
        return by_culprit(refused.message)
    return {}


def by_culprit(message: str) -> Refusals:
    found: Refusals = defaultdict(set)
    assert "violates PodSecurity" in message
    for reason, culprits in re.findall(r"([\w !=]+?) \((.*?)(?: must| uses|\))", message.partition('": ')[2]):
        for container in re.findall(r'"(.+?)"', culprits) or [culprits]:
            found[container].add(reason.strip())
    return dict(found)


def services() -> Iterator[Object]:
    """A service for each runtime of the chart, whose model is downloaded, batched and logged."""
    for path in sorted(RUNTIMES.glob("*.yaml")):
        for runtime in yaml.safe_load_all(path.read_text()):
            if runtime["kind"] != "ClusterServingRuntime":
                continue
            spec, name = runtime["spec"], name_of(runtime)
            taken = {
                key: spec["supportedModelFormats"][0][key]
                for key in ("name", "version")
                if key in spec["supportedModelFormats"][0]
            }
            protocol = spec.get("protocolVersions", ["v1"])[0]
            model = {"modelFormat": taken, "runtime": name, "storageUri": "gs://a/b", "protocolVersion": protocol}
            predictor: Object = {"model": model, "logger": {"url": "http://sink", "mode": "all"}, "batcher": {}}
            if "workerSpec" in spec:
                predictor = {"model": {**model, "storageUri": "pvc://a/b"}, "workerSpec": {}}
            yield document("v1beta1", "InferenceService", name.removeprefix("kserve-"), {"predictor": predictor})


def document(version: str, kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": "tenant", "annotations": STANDARD}
    return {"apiVersion": f"serving.kserve.io/{version}", "kind": kind, "metadata": metadata, "spec": spec}


async def test_pods_of_users_pass_but_for_those_that_are_listed(client: Client, restricted: str) -> None:
    nodes = {"root": {"routerType": "Sequence", "steps": [{"serviceUrl": "http://elsewhere"}]}}
    graph = document("v1alpha1", "InferenceGraph", "graph", {"nodes": nodes})
    model = {"uri": "hf://a/b", "name": "m"}
    llm = document("v1alpha2", "LLMInferenceService", "llm", {"model": model})
    mounted = {"model": {**model, "uri": "pvc://a/b"}}
    plugins = [{"type": "predicted-latency-producer"}]
    scheduler = {"config": {"inline": {"plugins": plugins}}, "tokenizer": {}}
    halves = {**mounted, "prefill": {}, "router": {"scheduler": scheduler, "route": {}}}
    sizes = {"parallelism": {"data": 2, "dataLocal": 1}, "worker": {"containers": []}}
    spread = {**mounted, **sizes, "prefill": sizes}
    rendered = render(
        *services(),
        graph,
        llm,
        document("v1alpha2", "LLMInferenceService", "halves", halves),
        document("v1alpha2", "LLMInferenceService", "spread", spread),
        pods=True,
    )
    assert not rendered.problems
    pods = {name_of(child.stored): child.stored for child in rendered.children if child.stored["kind"] == "Pod"}
    assert len(pods) > 10
    found = {name: await refusals(client, restricted, pod["spec"]) for name, pod in pods.items()}
    assert {name: reasons for name, reasons in found.items() if reasons} == OF_THE_CHART


async def test_the_charts_own_pods_pass_but_for_those_that_are_listed(client: Client, restricted: str) -> None:
    objects = chart.render("kserve", WITH_CACHES)
    pods = {name_of(obj): obj["spec"]["template"]["spec"] for obj in objects if obj["kind"] in CONTROLLERS}
    assert len(pods) > 2
    found = {name: await refusals(client, restricted, spec) for name, spec in pods.items()}
    assert {name: reasons for name, reasons in found.items() if reasons} == PROGRAMS

"""What the chart and the controllers put into users' pods runs where PodSecurity enforces `restricted`.

The checks are those of the embedded API server, which tests/differential compares with kube-apiserver's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import yaml

from isvc import render
from isvc.apiserver.admission.plugins.pod_security import Policy
from isvc.kube.objects import Object, name_of

RUNTIMES = Path(__file__).parents[2] / "charts" / "isvc" / "files" / "runtimes"
RESTRICTED = Policy("restricted")
STANDARD = {"serving.kserve.io/deploymentMode": "Standard", "serving.kserve.io/autoscalerClass": "none"}

_ALL: Final = {
    "allowPrivilegeEscalation != false",
    "unrestricted capabilities",
    "runAsNonRoot != true",
    "seccompProfile",
}
EXCEPTIONS: Final = {
    "vllmserver-predictor": {"runAsNonRoot != true"},  # vLLM's image runs as root
    # Ray asks for nothing, and its containers share memory between nodes.
    "huggingfaceserver-multinode-predictor": _ALL,
    "huggingfaceserver-multinode-predictor-worker": _ALL,
    # These two are as KServe's, or what runs would restart when it is taken over. An LLM's template can say more about
    # its init container storage-initializer.
    "graph": {"seccompProfile"},
    "llm-kserve": _ALL,
}
"""By the name of the pod, what it is refused for."""


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


@pytest.fixture(scope="module")
def refusals() -> dict[str, set[str]]:
    """Why each pod would be refused, by its name."""
    nodes = {"root": {"routerType": "Sequence", "steps": [{"serviceUrl": "http://elsewhere"}]}}
    graph = document("v1alpha1", "InferenceGraph", "graph", {"nodes": nodes})
    llm = document("v1alpha2", "LLMInferenceService", "llm", {"model": {"uri": "hf://a/b", "name": "m"}})
    rendered = render(*services(), graph, llm, pods=True)
    assert not rendered.problems
    pods = {name_of(child.stored): child.stored for child in rendered.children if child.stored["kind"] == "Pod"}
    assert len(pods) > 10
    return {
        name: {violation.reason for violation in RESTRICTED.violations(pod["metadata"], pod["spec"])}
        for name, pod in pods.items()
    }


def test_pods_pass_but_for_those_that_are_listed(refusals: dict[str, set[str]]) -> None:
    assert {name: reasons for name, reasons in refusals.items() if reasons} == EXCEPTIONS

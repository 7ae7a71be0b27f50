"""What an LLMInferenceService is merged from."""

from __future__ import annotations

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.insight.rendering.documents import Document
from isvc.insight.rendering.effective import effective_llm
from isvc.insight.rendering.renderer import Cluster
from isvc.kube.objects import Object
from isvc.programs.options import Options

BASE = {
    "apiVersion": "serving.kserve.io/v1alpha2",
    "kind": "LLMInferenceServiceConfig",
    "metadata": {"name": "big", "namespace": "default"},
    "spec": {"replicas": 3, "template": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "4"}}}]}},
}
CHAT: Object = {
    "apiVersion": "serving.kserve.io/v1alpha2",
    "kind": "LLMInferenceService",
    "metadata": {"name": "chat", "namespace": "default"},
    "spec": {
        "model": {"uri": "hf://org/model", "name": "org/model"},
        "baseRefs": [{"name": "big"}],
        "replicas": 2,
        "router": {"route": {}, "gateway": {}, "scheduler": {}},
    },
}


async def test_sources_of_an_llm_are_itself_its_configurations_and_presets() -> None:
    cluster = Cluster(Options())
    cluster.install([Document(BASE)], [])
    service = await cluster.simulation.apply(LLM_INFERENCE_SERVICES, CHAT)
    found = {field.path: field.source for field in await effective_llm(cluster.simulation, service)}
    assert found["replicas"] == "service"
    assert found["template.containers[main].resources.limits.cpu"] == "config big"
    assert found["template.containers[main].image"] == "preset kserve-config-llm-template"
    assert found["router.scheduler.template.serviceAccountName"] == "default"
    assert any(source == "preset kserve-config-llm-router-route" for source in found.values())

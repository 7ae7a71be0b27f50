"""What else pods get: tiers of the key-value cache, claimed devices, the pool's name, traces."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.controllers.llmisvc.workload.workloads import POD, container, live, observed_with, workload

from isvc.api.annotations import DEVICE_CLASS, DEVICE_CONTAINER, DEVICE_COUNT, DEVICE_SELECTOR
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.devices import claim_template
from isvc.controllers.llmisvc.workload.phases import main_phase
from isvc.controllers.llmisvc.workload.pods import build_pod
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import RESOURCE_CLAIM_TEMPLATES
from isvc.serving.refused import Refused


def built(observed: Observed) -> Object:
    return build_pod(observed, main_phase(observed), observed.spec.template or {})


def asking(**annotations: str) -> dict[str, Any]:
    keys = {"of": DEVICE_CLASS, "count": DEVICE_COUNT, "where": DEVICE_SELECTOR, "to": DEVICE_CONTAINER}
    return {"annotations": {keys[key]: value for key, value in annotations.items()}}


def test_every_tier_of_the_cache_is_a_volume() -> None:
    claim = {"accessModes": ["ReadWriteOnce"]}
    tiers = [
        {"fileSystem": {"emptyDir": {"size": "20Gi"}}},
        {"fileSystem": {"pvc": {"ref": {"name": "kv", "path": "a"}}}},
        {"fileSystem": {"pvc": {"spec": claim}}},
    ]
    asked = {"requests": {"ephemeral-storage": "1Gi"}}
    template = {"containers": [{"name": "main", "resources": asked}]}
    pod = built(workload("pvc://c/m", template=template, kvCacheOffloading={"cpu": "1Gi", "secondary": tiers}))
    assert pod["volumes"][1:] == [
        {"name": "kv-cache-secondary-0", "emptyDir": {"sizeLimit": "20Gi"}},
        {"name": "kv-cache-secondary-1", "persistentVolumeClaim": {"claimName": "kv"}},
        {"name": "kv-cache-secondary-2", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}},
    ]
    assert container(pod)["volumeMounts"][2] == {
        "name": "kv-cache-secondary-1",
        "mountPath": "/mnt/kv-cache-1",
        "subPath": "a",
    }
    assert container(pod)["resources"]["requests"] == {"ephemeral-storage": "21Gi"}
    assert asked == {"requests": {"ephemeral-storage": "1Gi"}}, "the spec itself is not changed"


def test_devices_are_claimed_for_the_container_that_is_named() -> None:
    template = {"containers": [{"name": "side"}, {"name": "main"}]}
    observed = workload("pvc://c/m", template=template, metadata=asking(of="gpu.example.com", count="4", to="main"))
    pod = built(observed)
    assert pod["resourceClaims"] == [{"name": "managed-device", "resourceClaimTemplateName": "llama-managed-dra"}]
    assert container(pod)["resources"]["claims"] == [{"name": "managed-device"}]
    assert "resources" not in container(pod, "side")
    first = built(workload("pvc://c/m", template=template, metadata=asking(of="gpu.example.com")))
    assert "claims" in container(first, "side")["resources"]


def test_a_claim_template_says_what_the_annotations_ask_for() -> None:
    template = claim_template(workload(metadata=asking(of=" gpu ", count="2", where="device.a\n\n device.b ")))
    assert template is not None
    request = template.manifest["spec"]["spec"]["devices"]["requests"][0]
    assert request == {
        "name": "device",
        "exactly": {
            "deviceClassName": "gpu",
            "count": 2,
            "selectors": [{"cel": {"expression": "device.a"}}, {"cel": {"expression": "device.b"}}],
        },
    }
    assert claim_template(workload()) is None


@pytest.mark.parametrize("count", ["none", "0", "-1"])
def test_a_count_that_is_none_is_refused(count: str) -> None:
    with pytest.raises(Refused, match="exp-dra-device-count"):
        claim_template(workload(metadata=asking(of="gpu", count=count)))


def test_another_class_moves_pods_to_another_template_since_none_can_be_changed() -> None:
    first = claim_template(workload(metadata=asking(of="gpu")))
    assert first is not None
    assert name_of(first.manifest) == "llama-managed-dra"
    there = live(RESOURCE_CLAIM_TEMPLATES, first.manifest)
    changed = workload(metadata=asking(of="tpu"), more={"live": there})
    second = claim_template(changed)
    assert second is not None
    assert name_of(second.manifest) != name_of(first.manifest)
    claimed = built(observed_with(changed, live={**there, **live(RESOURCE_CLAIM_TEMPLATES, second.manifest)}))
    assert claimed["resourceClaims"][0]["resourceClaimTemplateName"] == name_of(second.manifest)
    settled = observed_with(changed, live=live(RESOURCE_CLAIM_TEMPLATES, second.manifest))
    assert claim_template(settled) == second, "it keeps its name when the first is gone"


def test_defaults_of_the_api_server_make_no_other_template() -> None:
    template = claim_template(workload(metadata=asking(of="gpu")))
    assert template is not None
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    spec = {"spec": {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}}
    there = live(RESOURCE_CLAIM_TEMPLATES, {**template.manifest, "spec": spec})
    assert claim_template(workload(metadata=asking(of="gpu"), more={"live": there})) == template


def test_the_routing_sidecar_learns_which_pool_it_serves() -> None:
    template = {**POD, "initContainers": [{"name": "llm-d-routing-sidecar"}]}
    for router, expected in (
        ({}, "llama-inference-pool"),
        ({"scheduler": {"pool": {"ref": {"name": "theirs"}}}}, "theirs"),
    ):
        pod = built(workload("pvc://c/m", template=template, router=router))
        env = container(pod, "llm-d-routing-sidecar")["env"]
        assert env == [{"name": "INFERENCE_POOL_NAME", "value": expected}]
    assert "env" not in container(built(workload("pvc://c/m", template=template)), "llm-d-routing-sidecar")


def test_a_traced_server_says_so() -> None:
    pod = built(workload("pvc://c/m", tracing={"exporterEndpoint": "http://otel:4317"}))
    assert container(pod)["args"][:2] == ["--otlp-traces-endpoint", "http://otel:4317"]
    assert {"name": "OTEL_SERVICE_NAME", "value": "inference-server-decode"} in container(pod)["env"]

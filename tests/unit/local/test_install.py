"""What is installed agrees with what the manager reads and serves."""

from __future__ import annotations

import re

import orjson
import pytest

from isvc.api.kinds.crds import crds
from isvc.kube.objects import name_of
from isvc.local.install import webhook_configurations
from isvc.local.install.config import config_map, with_port
from isvc.local.install.shipped import local_presets, local_runtimes
from isvc.local.install.third_party import third_party_crds
from isvc.local.node.programs.images import BUILT_IN, fits, image_name
from isvc.programs.webhooks import ISVC_WEBHOOKS
from isvc.serving.config import Config
from isvc.serving.llm.presets import preset_names
from isvc.serving.thirdparty import (
    GATEWAY_CLASSES,
    GATEWAYS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    LEADER_WORKER_SETS,
)


def test_the_configuration_is_one_the_manager_reads():
    config = Config.parse(config_map("kserve", 8123)["data"])
    assert config.deploy.default_mode == "Standard"
    assert config.ingress.ingress_domain == "localhost:8123"


def test_only_a_domain_of_ours_follows_the_port():
    section = config_map("kserve", 8080)["data"]["ingress"]
    assert with_port(section, 8080) is None
    changed = with_port(section, 9090)
    assert changed is not None
    assert orjson.loads(changed)["ingressDomain"] == "localhost:9090"
    assert with_port('{"ingressDomain": "example.com"}', 9090) is None
    assert with_port("nonsense", 9090) is None


def test_every_webhook_has_somebody_who_answers():
    served = {webhook.path for webhook in ISVC_WEBHOOKS}
    for configuration in webhook_configurations(ISVC_WEBHOOKS, "https://x", b"ca"):
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["url"].removeprefix("https://x")
            assert path in served


@pytest.mark.parametrize("runtime", [o for o in local_runtimes() if o["kind"] == "ClusterServingRuntime"], ids=name_of)
def test_every_runtime_runs_here(runtime):
    for container in runtime["spec"]["containers"]:
        assert any(fits(key, image_name(container["image"])) for key in BUILT_IN)


def test_the_kinds_of_the_installed_objects_are_installed():
    kinds = {crd["spec"]["names"]["kind"] for crd in crds(described=False)}
    assert {obj["kind"] for obj in local_runtimes()} <= kinds
    assert "InferenceService" in kinds


def test_every_kind_that_services_are_made_of_is_installed():
    installed = {crd["metadata"]["name"] for crd in third_party_crds()}
    pools = {str(INFERENCE_POOLS), str(INFERENCE_POOLS_V1ALPHA2)}
    assert installed >= {str(HTTP_ROUTES), str(GATEWAYS), str(GATEWAY_CLASSES), str(LEADER_WORKER_SETS), *pools}


def test_presets_wait_for_no_other_machine_and_set_nothing_aside():
    presets = local_presets("kserve")
    assert {preset["metadata"]["name"] for preset in presets} == preset_names()
    text = orjson.dumps(presets).decode()
    assert not any(word in text for word in ("preStop", "initialDelaySeconds", '"resources"'))
    assert '"startupProbe"' in text


@pytest.mark.parametrize(
    "name", ["template", "decode-template", "prefill-template", "worker-data-parallel", "scheduler"]
)
def test_the_images_of_presets_run_here(name):
    found = next(each for each in local_presets("kserve") if each["metadata"]["name"] == f"kserve-config-llm-{name}")
    images = re.findall(r'"image":"([^"]+)"', orjson.dumps(found).decode())
    assert images
    assert all(any(fits(key, image_name(image)) for key in BUILT_IN) for image in images)

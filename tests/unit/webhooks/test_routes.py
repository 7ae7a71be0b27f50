"""Webhooks are where KServe's configurations look for them, and answer with the codes that KServe answers with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.recordings import FOLDER, load_all
from tests.unit.webhooks.memory import Memory, all_routes, answer_of

from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    SERVING_RUNTIMES,
)
from isvc.kube.errors import InternalError
from isvc.kube.objects import GVK
from isvc.kube.patch import json_patch
from isvc.kube.resource import CONFIG_MAPS
from isvc.programs.registration import Webhook, configurations
from isvc.programs.webhooks import ISVC_WEBHOOKS, LLM_WEBHOOKS
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse

WEBHOOKS = FOLDER / "webhooks"
MODEL = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://models/iris"}
LOCAL_MODEL = "internal.serving.kserve.io/localmodel"


def service(**predictor: Any) -> dict[str, Any]:
    return {"metadata": {"name": "iris", "namespace": "team"}, "spec": {"predictor": predictor}}


def ask(
    memory: Memory, path: str, obj: dict[str, Any], old: dict[str, Any] | None = None, operation: str = "CREATE"
) -> AdmissionResponse:
    routes = all_routes(memory)
    kind = GVK("serving.kserve.io", "v1", "X")
    request = AdmissionRequest("1", operation, "team", "iris", kind, obj, old or {}, False, {})
    return answer_of(routes[path], request)


MUTATE = "/mutate-serving-kserve-io-v1beta1-inferenceservice"
VALIDATE = "/validate-serving-kserve-io-v1beta1-inferenceservice"


@pytest.mark.skipif(not WEBHOOKS.exists(), reason="the reference's webhook configurations are not here")
@pytest.mark.parametrize(("program", "webhooks"), [("manager", ISVC_WEBHOOKS), ("llmisvc", LLM_WEBHOOKS)])
def test_webhooks_are_registered_as_the_reference_registers_them(program: str, webhooks: tuple[Webhook, ...]):
    def registered(manifests: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
        """Every webhook, without the versions of reviews, of which we take more."""
        return {
            (each["kind"], each["metadata"]["name"], hook["name"]): {**hook, "admissionReviewVersions": None}
            for each in manifests
            if each
            for hook in each["webhooks"]
        }

    service = {"name": "$(webhookServiceName)", "namespace": "$(kserveNamespace)"}
    asked = registered(load_all(WEBHOOKS / f"{program}.yaml"))
    ours = registered(configurations(webhooks, lambda path: {"service": {**service, "path": path}}))
    assert asked == {name: ours.get(name) for name in asked}
    assert {name for _, name, _ in ours.keys() - asked.keys()} == (
        {"localmodelcache.serving.kserve.io", "localmodelnamespacecache.serving.kserve.io"}
        if program == "manager"
        else set()
    )


def test_the_defaulter_patches():
    obj = service(sklearn={"storageUri": "gs://a"})
    answer = ask(Memory({}, {"deploy": '{"defaultDeploymentMode": "Standard"}'}), MUTATE, obj)
    assert answer.allowed
    stored = json_patch.apply(obj, list(answer.patch))
    assert stored["spec"]["predictor"]["model"]["modelFormat"] == {"name": "sklearn"}
    assert stored["metadata"]["annotations"]["serving.kserve.io/deploymentMode"] == "Standard"


def test_codes():
    memory = Memory({}, {})
    assert ask(memory, MUTATE, service(minReplicas="1")).code == 400
    assert ask(memory, VALIDATE, service()).code == 403
    llm = {"apiVersion": "serving.kserve.io/v1alpha2", "spec": {"worker": {}}}
    assert ask(memory, "/validate-serving-kserve-io-v1alpha2-llminferenceservice", llm).code == 422
    assert ask(memory, VALIDATE, {}, service(), "DELETE").allowed


def test_without_a_configuration_nothing_is_decided():
    nothing = Memory({CONFIG_MAPS: []}, {})
    with pytest.raises(InternalError, match="inferenceservice-config"):
        ask(nothing, MUTATE, service(model=MODEL))
    with pytest.raises(InternalError, match="deploy is not JSON"):
        ask(Memory({}, {"deploy": "{"}), MUTATE, service(model=MODEL))


@pytest.mark.parametrize(
    ("config", "annotations", "expected"),
    [
        ({"localModel": '{"enabled": true}'}, {}, "near"),
        ({"localModel": '{"enabled": true}'}, {"serving.kserve.io/disable-localmodel": "false"}, None),
        ({}, {}, None),
    ],
)
def test_caches_are_used_when_that_is_enabled(
    config: dict[str, str], annotations: dict[str, str], expected: str | None
):
    spec = {"sourceModelUri": "gs://models/iris", "modelSize": "1Gi", "nodeGroups": ["gpu"]}
    memory = Memory(
        {
            LOCAL_MODEL_CACHES: [{"metadata": {"name": "far"}, "spec": spec}],
            LOCAL_MODEL_NAMESPACE_CACHES: [{"metadata": {"name": "near", "namespace": "team"}, "spec": spec}],
        },
        config,
    )
    obj = service(model=MODEL)
    obj["metadata"]["annotations"] = annotations
    stored = json_patch.apply(obj, list(ask(memory, MUTATE, obj).patch))
    assert stored["metadata"].get("labels", {}).get(LOCAL_MODEL) == expected


def test_runtimes_are_compared_within_their_scope():
    spec = {
        "containers": [],
        "protocolVersions": ["v2"],
        "supportedModelFormats": [{"name": "x", "autoSelect": True, "priority": 1}],
    }
    there = {"metadata": {"name": "there", "namespace": "team"}, "spec": spec}
    memory = Memory({SERVING_RUNTIMES: [there], CLUSTER_SERVING_RUNTIMES: []}, {})
    new = {"metadata": {"name": "new", "namespace": "team"}, "spec": spec}
    assert not ask(memory, "/validate-serving-kserve-io-v1alpha1-servingruntime", new).allowed
    assert ask(memory, "/validate-serving-kserve-io-v1alpha1-clusterservingruntime", new).allowed


def test_a_cache_in_use_cannot_be_deleted():
    user = {"kind": "InferenceService", "metadata": {"name": "s", "namespace": "n", "labels": {LOCAL_MODEL: "c"}}}
    cache = {"metadata": {"name": "c"}, "status": {"inferenceServices": [{"name": "s", "namespace": "n"}]}}
    path = "/validate-serving-kserve-io-v1alpha1-localmodelcache"
    assert not ask(Memory({INFERENCE_SERVICES: [user]}, {}), path, {}, cache, "DELETE").allowed
    assert ask(Memory({INFERENCE_SERVICES: []}, {}), path, {}, cache, "DELETE").allowed

"""Webhooks are where KServe's configurations look for them, and answer with the codes that KServe answers with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.recordings import FOLDER, load_all
from tests.unit.webhooks.memory import Memory, NewerServer, all_routes, answer_of

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
from isvc.kube.resource import CONFIG_MAPS, Resource
from isvc.programs.registration import Webhook, configurations
from isvc.programs.webhooks import ISVC_WEBHOOKS, LLM_WEBHOOKS, LOCALMODEL_WEBHOOKS
from isvc.toolkit.webhook import AdmissionRequest, AdmissionResponse
from isvc.toolkit.webhook.server import Admission

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
@pytest.mark.parametrize(
    ("program", "webhooks"),
    [("manager", ISVC_WEBHOOKS), ("llmisvc", LLM_WEBHOOKS), ("localmodel", LOCALMODEL_WEBHOOKS)],
)
def test_webhooks_are_registered_as_the_reference_registers_them(program: str, webhooks: tuple[Webhook, ...]):
    def registered(manifests: Iterable[dict[str, Any]]) -> dict[tuple[str, str, str], dict[str, Any]]:
        """Every webhook, by its path at whatever Service, without the versions of reviews, of which we take more."""
        return {
            (each["kind"], each["metadata"]["name"], hook["name"]): {
                **hook,
                "clientConfig": hook["clientConfig"]["service"]["path"],
                "admissionReviewVersions": None,
            }
            for each in manifests
            if each
            for hook in each["webhooks"]
        }

    asked = registered(load_all(WEBHOOKS / f"{program}.yaml"))
    ours = registered(configurations(webhooks, lambda path: {"service": {"path": path}}))
    assert asked == {name: ours.get(name) for name in asked}
    assert ours.keys() == asked.keys()


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


async def mark_of(memory: Memory, server: NewerServer, path: str, obj: dict[str, Any], operation: str) -> str | None:
    """Returns the cache that a service is marked with once the API server was asked as well."""
    request = AdmissionRequest("1", operation, "team", "iris", GVK("serving.kserve.io", "v1", "X"), obj, {}, False, {})
    route = all_routes(memory, server=server)[path]
    assert isinstance(route, Admission)
    answer = route.handler(request)
    decided = answer if isinstance(answer, AdmissionResponse) else await answer
    stored = json_patch.apply(obj, list(decided.patch))
    return stored["metadata"].get("labels", {}).get(LOCAL_MODEL)


@pytest.mark.parametrize(
    ("path", "obj"),
    [
        (MUTATE, service(model=MODEL)),
        (
            "/mutate-serving-kserve-io-v1alpha2-llminferenceservice",
            {
                "apiVersion": "serving.kserve.io/v1alpha2",
                "metadata": {"name": "iris", "namespace": "team"},
                "spec": {"model": {"uri": "gs://models/iris"}},
            },
        ),
    ],
    ids=["InferenceService", "LLMInferenceService"],
)
@pytest.mark.parametrize("resource", [LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES], ids=str)
async def test_a_new_service_finds_a_cache_that_no_watch_has_brought_yet(
    resource: Resource, path: str, obj: dict[str, Any]
):
    spec = {"sourceModelUri": "gs://models/iris", "modelSize": "1Gi", "nodeGroups": ["gpu"]}
    namespace = {"namespace": "team"} if resource.namespaced else {}
    server = NewerServer({resource: [{"metadata": {"name": "fresh", **namespace}, "spec": spec}]})
    enabled = Memory({}, {"localModel": '{"enabled": true}'})
    assert await mark_of(enabled, server, path, obj, "CREATE") == "fresh"
    assert await mark_of(enabled, server, path, obj, "UPDATE") is None, "nobody waits for a cache at every write"
    assert await mark_of(enabled, NewerServer(), path, obj, "CREATE") is None
    assert await mark_of(Memory(), server, path, obj, "CREATE") is None, "caches are not used here"


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


def test_a_namespaces_cache_of_a_group_that_does_not_exist_is_refused_with_kserves_code():
    spec = {"sourceModelUri": "gs://a/b", "modelSize": "1Gi", "nodeGroups": ["nowhere"]}
    path = "/validate-serving-kserve-io-v1alpha1-localmodelnamespacecache"
    refused = ask(Memory({}, {}), path, {"metadata": {"name": "c", "namespace": "team"}, "spec": spec})
    assert (refused.allowed, refused.code) == (False, 404)


def test_a_service_that_is_new_is_not_defaulted_by_a_configuration_that_was_deleted():
    memory = Memory(config={"deploy": '{"defaultDeploymentMode": "Standard"}'})
    route, kind = all_routes(memory)[MUTATE], GVK("serving.kserve.io", "v1beta1", "InferenceService")

    def ask_for(operation: str) -> AdmissionResponse:
        stored = service(model=MODEL)
        return answer_of(route, AdmissionRequest("1", operation, "team", "iris", kind, stored, stored, False, {}))

    assert ask_for("CREATE").allowed
    memory.remove(CONFIG_MAPS, "inferenceservice-config", "kserve")
    assert ask_for("UPDATE").allowed
    with pytest.raises(InternalError, match="there is no ConfigMap inferenceservice-config"):
        ask_for("CREATE")

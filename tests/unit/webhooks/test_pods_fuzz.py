"""Whatever pod the webhook is shown, it is answered: mutated, or refused with a sentence. It never crashes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import budget
from tests.unit.webhooks.memory import Memory, NoServer
from tests.unit.webhooks.test_fuzz import JSON, places, replaced, review

from isvc.api.annotations import LOCAL_MODEL, LOCAL_MODEL_PVC_NAME, LOCAL_MODEL_SOURCE_URI
from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, INFERENCE_SERVICES
from isvc.kube.builtin.shape import shape
from isvc.kube.builtin.types import message_of
from isvc.kube.errors import BadRequest, NotFound
from isvc.kube.objects import GVK, Object, deep_copy
from isvc.kube.resource import Resource
from isvc.serving import annotations as names
from isvc.toolkit.webhook import AdmissionResponse
from isvc.toolkit.webhook.admission import parse
from isvc.webhooks.pods import PodMutator

CONFIG = {
    "storageInitializer": '{"image": "a/b", "enableOciImageSource": true}',
    "logger": '{"image": "a/b"}',
    "batcher": '{"image": "a/b"}',
    "agent": '{"image": "a/b"}',
    "credentials": '{"storageSecretNameAnnotation": "serving.kserve.io/storageSecretName"}',
}
ANNOTATIONS = {
    names.SOURCE_URI: "s3://a/b",
    names.STORAGE_SPEC: "true",
    names.STORAGE_SPEC_PARAM: '{"type": "s3"}',
    names.STORAGE_SPEC_KEY: "k",
    names.STORAGE_READONLY: "false",
    names.INITIALIZER_UID: "1000",
    names.LOGGER: "true",
    names.LOGGER_SINK_URL: "http://a",
    names.LOGGER_MODE: "all",
    names.LOGGER_METADATA_HEADERS: "a,b",
    names.BATCHER: "true",
    names.BATCHER_MAX_BATCH_SIZE: "32",
    names.BATCHER_MAX_LATENCY: "500",
    names.PULLER: "true",
    names.PULLER_CONFIG_VOLUME: "v",
    names.PULLER_CONFIG_PATH: "/mnt/configs",
    names.PULLER_MODEL_DIR: "/mnt/models",
    names.METRIC_AGGREGATION: "true",
    names.PROMETHEUS_SCRAPING: "true",
    names.MODEL_METRICS_PORT: "8080",
    names.GKE_ACCELERATOR: "t4",
    LOCAL_MODEL_SOURCE_URI: "s3://a",
    LOCAL_MODEL_PVC_NAME: "claim",
}
CONTAINER = {
    "name": "kserve-container",
    "args": ["--http_port=8080"],
    "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
    "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "1"}},
    "readinessProbe": {"httpGet": {"path": "/", "port": 8080, "httpHeaders": [{"name": "a", "value": "b"}]}},
    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    "securityContext": {"runAsUser": 1000},
}
POD: Object = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {names.SERVICE: "s", LOCAL_MODEL: "m"}, "annotations": ANNOTATIONS},
    "spec": {
        "containers": [CONTAINER, {"name": "istio-proxy", "securityContext": {"runAsUser": 1337}}],
        "initContainers": [{"name": "i", "image": "a"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "nodeSelector": {"a": "b"},
        "serviceAccountName": "default",
    },
}
LOGGER = {"storage": {"path": "s3://a", "key": "k", "parameters": {"type": "s3"}}, "mode": "all"}
SERVICE = {"metadata": {"name": "s", "namespace": "b"}, "spec": {"predictor": {"logger": LOGGER}}}


class EmptyServer(NoServer):
    """An API server that has nothing."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        raise NotFound(f'{resource.plural} "{name}" not found')


def ask(pod: Any) -> AdmissionResponse:
    memory = Memory({INFERENCE_SERVICES: [SERVICE], CLUSTER_STORAGE_CONTAINERS: []}, CONFIG)
    return asyncio.run(PodMutator(memory, EmptyServer(), "kserve")(parse(review("CREATE", pod, None))))


def as_stored(pod: Object) -> Object:
    """The pod as an API server sends it on, which has decoded it; raises BadRequest where that fails."""
    message = message_of(GVK("", "v1", "Pod"))
    assert message is not None
    return shape(deep_copy(pod), message, [])


@budget(300)
@given(data=st.data())
def test_a_mangled_pod_gets_an_answer(data: st.DataObject):
    pod = POD
    for _ in range(data.draw(st.integers(1, 3))):
        pod = replaced(pod, data.draw(st.sampled_from(places(pod)[1:])), data.draw(JSON))
    pod = {**pod, "apiVersion": "v1", "kind": "Pod"}
    try:
        sent = as_stored(pod)
    except BadRequest:
        with pytest.raises(BadRequest):
            ask(pod)
    else:
        answer = ask(sent)
        assert answer.allowed or answer.message


@budget(300)
@given(data=st.data())
def test_whatever_an_annotation_says_gets_an_answer(data: st.DataObject):
    """This an API server does send."""
    odd = ["9" * 5000, "-1", "1e400", "[]", "{", "true", "s3://[", "oci://", "pvc://", "null"]
    words = st.one_of(st.text(max_size=8), st.sampled_from(odd))
    some = data.draw(st.dictionaries(st.sampled_from(sorted(ANNOTATIONS)), words, max_size=4))
    without = data.draw(st.sets(st.sampled_from(sorted(ANNOTATIONS)), max_size=12))
    kept = {name: value for name, value in ANNOTATIONS.items() if name not in without}
    labels = data.draw(st.sampled_from([POD["metadata"]["labels"], {names.SERVICE: "s"}]))
    answer = ask({**POD, "metadata": {"name": "p", "labels": labels, "annotations": {**kept, **some}}})
    assert answer.allowed or answer.message


@pytest.mark.parametrize(
    ("place", "value", "named"),
    [
        (("spec", "containers", 0), 3, "container"),
        (("spec", "containers"), "c", "containers"),
        (("spec",), [], "spec"),
        (("metadata", "labels"), ["a"], "labels"),
        (("metadata", "annotations"), 1, "annotations"),
        (("spec", "volumes", 0, "name"), {}, "name"),
    ],
)
def test_a_pod_that_is_none_is_refused_as_an_api_server_does(place: tuple[Any, ...], value: Any, named: str):
    with pytest.raises(BadRequest, match=named):
        ask(replaced(POD, place, value))


@pytest.mark.parametrize("spec", [{}, {"containers": None}, {"containers": []}])
def test_a_pod_without_containers_is_left_to_the_api_server(spec: Object):
    """It validates what webhooks have mutated, and says what is missing."""
    answer = ask({**POD, "spec": spec})
    assert (answer.allowed, answer.patch) == (True, ())

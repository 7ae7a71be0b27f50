"""Whatever is sent to a webhook, it answers, and with a review wherever there was one. It never crashes."""

from __future__ import annotations

import asyncio
import copy
import json
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import budget
from tests.unit.webhooks.memory import Memory, NewerServer, all_routes

from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    SERVING_RUNTIMES,
)
from isvc.kube.errors import ApiError
from isvc.toolkit.webhook import WebhookServer
from isvc.toolkit.webhook.admission import parse
from isvc.toolkit.webhook.server import Conversion
from isvc.webhooks import pods
from isvc.wire.x509.issue import issue_authority, issue_serving

POD = {"containers": [{"name": "c", "env": [{"name": "A", "value": "b"}], "resources": {"limits": {"cpu": "1"}}}]}
MODEL = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://a/b", "storage": {"key": "k"}, "env": []}
METRICS = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageValue": "1Gi"}}}]
SPECS: dict[str, dict[str, Any]] = {
    "inferenceservice": {
        "predictor": {
            "model": MODEL,
            **POD,
            "minReplicas": 1,
            "autoScaling": {"metrics": METRICS},
            "logger": {"mode": "all", "storage": {}},
            "storageUris": [{"uri": "gs://a", "mountPath": "/mnt/a"}],
            "workerSpec": {**POD, "pipelineParallelSize": 2},
        },
        "transformer": POD,
        "explainer": {"art": {"type": "SquareAttack", "config": {"a": "b"}}},
        "canary": [{"predictor": {"name": "b", "model": MODEL}, "trafficPercent": 10}],
    },
    "inferencegraph": {"nodes": {"root": {"routerType": "Splitter", "steps": [{"serviceName": "a", "weight": 100}]}}},
    "trainedmodel": {
        "inferenceService": "a",
        "model": {"storageUri": "s3://a", "framework": "sklearn", "memory": "1Gi"},
    },
    "servingruntime": {
        **POD,
        "supportedModelFormats": [{"name": "sklearn", "autoSelect": True, "priority": 1, "version": "1"}],
        "protocolVersions": ["v2"],
        "workerSpec": POD,
    },
    "localmodelcache": {"sourceModelUri": "gs://a", "modelSize": "1Gi", "nodeGroups": ["a"]},
    "llminferenceservice": {
        "model": {"uri": "hf://a", "name": "a", "lora": {"adapters": [{"name": "b", "uri": "hf://b"}]}},
        "template": POD,
        "worker": POD,
        "parallelism": {"data": 2, "dataLocal": 1},
        "scaling": {"maxReplicas": 2, "wva": {"keda": {"idleReplicaCount": 0, "advanced": {"scalingModifiers": {}}}}},
        "prefill": {"scaling": {"maxReplicas": 1, "keda": {"triggers": [{"type": "cpu", "metadata": {}}]}}},
        "rolloutStrategy": {"maxSurge": "25%", "maxUnavailable": 0},
        "kvCacheOffloading": {"cpu": "1Gi", "secondary": [{"fileSystem": {"pvc": {"ref": {"name": "a"}}}}]},
        "router": {
            "route": {"group": "a", "weight": 1, "http": {"spec": {"parentRefs": [{"name": "a"}]}}},
            "gateway": {"refs": [{"name": "a", "namespace": "b"}]},
            "scheduler": {
                "pool": {"spec": {"targetPorts": [{"number": 1}], "extensionRef": {"name": "a"}}},
                "config": {"inline": {"a": 1}},
            },
        },
    },
}
CONFIG = {
    "localModel": '{"enabled": true}',
    "inferenceService": '{"resource": {"cpuLimit": "1", "memoryRequest": "1Gi"}}',
    "security": '{"autoMountServiceAccountToken": false}',
}


def routes() -> dict[str, Any]:
    cache = {"metadata": {"name": "c"}, "spec": SPECS["localmodelcache"]}
    runtime = {"metadata": {"name": "r"}, "spec": SPECS["servingruntime"]}
    memory = Memory(
        {
            LOCAL_MODEL_CACHES: [cache],
            LOCAL_MODEL_NAMESPACE_CACHES: [],
            LOCAL_MODEL_NODE_GROUPS: [],
            SERVING_RUNTIMES: [runtime],
            CLUSTER_SERVING_RUNTIMES: [runtime],
            INFERENCE_SERVICES: [],
        },
        CONFIG,
    )
    return {path: route for path, route in all_routes(memory, server=NewerServer()).items() if path != pods.PATH}


ROUTES = routes()
ADMISSION = sorted(path for path, route in ROUTES.items() if not isinstance(route, Conversion))


def object_for(path: str) -> dict[str, Any]:
    version, kind = path.split("-")[-2:]
    stem = kind.removeprefix("cluster").removesuffix("config").replace("namespacecache", "cache")
    return {
        "apiVersion": f"serving.kserve.io/{version}",
        "kind": "LLMInferenceServiceConfig" if kind.endswith("config") else "LLMInferenceService",
        "metadata": {"name": "a", "namespace": "b", "annotations": {"serving.kserve.io/exp-dra-device-count": "1"}},
        "spec": copy.deepcopy(SPECS[stem]),
        "status": {"inferenceServices": [{"name": "a", "namespace": "b"}], "deploymentMode": "Standard"},
    }


def places(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [here, *(place for key, item in below for place in places(item, (*here, key)))]


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    changed = copy.copy(value)
    changed[place[0]] = replaced(value[place[0]], place[1:], new)
    return changed


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(
        ["pvc://", "../..", "{{ .Name }}", "1e400", "9" * 5000, "\u0000", "\U0001f600", "a" * 300, "%", "-1%"]
    ),
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.text(max_size=5), st.sampled_from(["name", "env", "containers"])), inner, max_size=3
        ),
    ),
    max_leaves=8,
)


def review(operation: str, obj: Any, old: Any) -> dict[str, Any]:
    request = {"uid": "1", "operation": operation, "namespace": "b", "name": "a", "object": obj, "oldObject": old}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


@pytest.mark.parametrize("path", ADMISSION)
@given(data=st.data())
def test_mangled_objects_get_an_answer(path: str, data: st.DataObject):
    obj = object_for(path)
    for _ in range(data.draw(st.integers(1, 3))):
        obj = replaced(obj, data.draw(st.sampled_from(places(obj)[1:])), data.draw(JSON))
        if not isinstance(obj, dict):
            break
    operation = data.draw(st.sampled_from(["CREATE", "UPDATE", "DELETE"]))
    old = {"CREATE": None, "UPDATE": object_for(path), "DELETE": obj}[operation]
    sent = json.loads(json.dumps(review(operation, None if operation == "DELETE" else obj, old)))
    try:
        answer = ROUTES[path].handler(parse(sent))
        answer = asyncio.run(answer) if asyncio.iscoroutine(answer) else answer
    except ApiError as error:
        if error.status_code >= 500:
            raise
        return
    assert answer.allowed in (True, False)
    assert answer.allowed or (answer.message and answer.code < 500)


@pytest.mark.parametrize("field", ["labels", "annotations"])
@pytest.mark.parametrize("path", ADMISSION)
def test_labels_and_annotations_that_are_none_are_refused(path: str, field: str):
    obj = object_for(path)
    answer = ROUTES[path].handler(parse(review("CREATE", {**obj, "metadata": {**obj["metadata"], field: True}}, None)))
    assert (answer.allowed, answer.code) == (False, 400)
    assert f"metadata.{field}" in answer.message


@budget(200)
@given(data=st.data())
def test_mangled_objects_are_converted_or_refused(data: st.DataObject):
    obj = object_for(f"/x-serving-kserve-io-{data.draw(st.sampled_from(['v1alpha1', 'v1alpha2']))}-llminferenceservice")
    obj = replaced(obj, data.draw(st.sampled_from(places(obj))), data.draw(JSON))
    wanted = data.draw(st.sampled_from(["serving.kserve.io/v1alpha1", "serving.kserve.io/v1alpha2", "x"]))
    try:
        converted = ROUTES["/convert"].handler([obj], wanted)
    except ValueError:
        return
    assert [each["apiVersion"] for each in converted] == [wanted]


@pytest.mark.parametrize("metadata", [None, [], {"annotations": True}, {"annotations": "x"}])
@pytest.mark.parametrize(("have", "want"), [("v1alpha1", "v1alpha2"), ("v1alpha2", "v1alpha1")])
def test_metadata_that_once_crashed_the_conversion(metadata: Any, have: str, want: str):
    obj = object_for(f"/x-serving-kserve-io-{have}-llminferenceservice") | {"metadata": metadata}
    obj["spec"]["model"]["criticality"] = "Critical"
    with pytest.raises(ValueError, match="maps"):
        ROUTES["/convert"].handler([obj], f"serving.kserve.io/{want}")


def nested(depth: int) -> str:
    return '{"a":' * depth + "1" + "}" * depth


HEAD = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1",'
BODIES: list[bytes] = [
    b"",
    b"\x00\xff\xfe",
    b"{",
    b"[]",
    b"null",
    b"1e999",
    b'{"kind": "AdmissionReview"}',
    json.dumps(review("CREATE", None, None)).encode(),
    json.dumps(review("CREATE", [], 3)).encode(),
    json.dumps(review("UPDATE", {"spec": "x"}, {"spec": []})).encode(),
    json.dumps(review("CREATE", {"metadata": {"name": "\ud83d"}}, None)).encode("utf-8", "surrogatepass"),
    b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"1","object":'
    + b"9" * 5000
    + b"}}",
    nested(100_000).encode(),
    HEAD + b'"operation":"CREATE","object":{"spec":{"predictor":{"pod":' + nested(800).encode() + b"}}}}}",
    b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"1","objects":[1,null]}}',
]


async def test_the_server_survives_every_body(tmp_path: Path):
    now = datetime.now(UTC)
    pair = issue_serving(issue_authority("tests", now), ["127.0.0.1"], now)
    (tmp_path / "tls.crt").write_bytes(pair.certificate)
    (tmp_path / "tls.key").write_bytes(pair.key)
    server = WebhookServer(0, tmp_path, ROUTES, host="127.0.0.1")
    await server.start()
    server.open()
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session:
            for path in ROUTES:
                url = f"https://127.0.0.1:{server.port}{path}"
                for body in BODIES:
                    async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as response:
                        assert response.status in (200, 400), (path, body[:80], await response.text())
                        answered = json.dumps(await response.json(content_type=None))
                        assert "crashed" not in answered
                        assert '"code": 500' not in answered
            path = "/validate-serving-kserve-io-v1alpha1-inferencegraph"
            good = json.dumps(review("CREATE", object_for(path), None))
            url = f"https://127.0.0.1:{server.port}{path}"
            async with session.post(url, data=good, headers={"Content-Type": "application/json"}) as response:
                assert (await response.json())["response"]["allowed"] is True
    finally:
        await server.stop()

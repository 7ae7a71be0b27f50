"""Answers in YAML and protobuf, and the forms of discovery."""

from __future__ import annotations

import struct

import pytest
import yaml
from tests.unit.apiserver.conftest import CONFIG_MAPS, Http

from isvc.apiserver.http.media import choose_media_type
from isvc.apiserver.protobuf import decode, encode
from isvc.apiserver.protobuf.values import fields

PROTOBUF = "application/vnd.kubernetes.protobuf"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"


async def raw(http: Http, path: str, accept: str) -> tuple[int, str, bytes]:
    async with http.session.get(http.server.url + path, headers={"Accept": accept}) as answer:
        return answer.status, answer.headers["Content-Type"], await answer.read()


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("application/yaml", "application/yaml"),
        ("application/yaml;q=0.5, application/json", "application/json"),
        ("application/yaml, */*;q=0.1", "application/yaml"),
        (f"{PROTOBUF}, application/json", "application/json"),
        (f"{PROTOBUF}, */*", "application/json"),
        (PROTOBUF, PROTOBUF),
        (f"{PROTOBUF};q=x", PROTOBUF),
    ],
)
def test_what_a_client_prefers(accept, media):
    assert choose_media_type(accept) == media


async def test_objects_lists_and_errors_come_as_yaml(http):
    made = await http.create(CONFIG_MAPS, metadata={"name": "a"}, data={"answer": "yes", "n": "1", "u": "ö"})
    code, kind, body = await raw(http, f"{CONFIG_MAPS}/a", "application/yaml")
    assert (code, kind, yaml.safe_load(body)) == (200, "application/yaml", made)
    _, _, body = await raw(http, CONFIG_MAPS, "application/yaml")
    assert [item["metadata"]["name"] for item in yaml.safe_load(body)["items"]] == ["a"]
    code, kind, body = await raw(http, f"{CONFIG_MAPS}/b", "application/yaml")
    assert (code, kind, yaml.safe_load(body)["reason"]) == (404, "application/yaml", "NotFound")
    code, _, body = await raw(http, f"{CONFIG_MAPS}?watch=true", "application/yaml")
    assert (code, "application/json;stream=watch" in yaml.safe_load(body)["message"]) == (406, True)


async def test_objects_and_watches_come_as_protobuf(http):
    made = await http.create(CONFIG_MAPS, metadata={"name": "a", "labels": {"x": "y"}}, data={"k": "v"})
    code, kind, body = await raw(http, f"{CONFIG_MAPS}/a", PROTOBUF)
    assert (code, kind, decode(body)) == (200, PROTOBUF, made)
    code, kind, body = await raw(http, f"{CONFIG_MAPS}?watch=true&timeoutSeconds=1", PROTOBUF)
    assert (code, kind) == (200, f"{PROTOBUF};stream=watch")
    (size,) = struct.unpack_from(">I", body)
    event = dict(fields(body[4 : 4 + size]))
    assert event[1] == b"ADDED"
    assert isinstance(event[2], bytes)
    envelope = dict(fields(event[2]))[1]
    assert isinstance(envelope, bytes)
    assert decode(envelope) == made


def test_every_kind_of_value_survives_protobuf():
    container = {
        "name": "c",
        "image": "i",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}},
        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": -1},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "creationTimestamp": "2026-11-16T01:02:03Z", "generation": 1 << 40},
        "spec": {
            "containers": [container],
            "volumes": [{"name": "v", "configMap": {"name": "m", "optional": True}}],
            "terminationGracePeriodSeconds": 0,
        },
    }
    assert decode(encode(pod)) == pod
    schema = {
        "type": "object",
        "additionalProperties": {"type": "string", "default": {"any": [1, None, "x"]}},
        "properties": {"a": {"items": {"type": "integer", "minimum": -1.5}}, "b": {"additionalProperties": False}},
        "x-kubernetes-list-map-keys": ["name"],
    }
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"versions": versions},
    }
    assert decode(encode(definition)) == definition


async def test_discovery_comes_in_the_form_that_is_asked_for_first(http):
    new, old = AGGREGATED.format("v2"), AGGREGATED.format("v2beta1")
    for accept in (new, f"{new},{old},application/json", f"{old},{new}"):
        code, kind, _ = await raw(http, "/apis", accept)
        assert (code, kind) == (200, new)
    code, kind, body = await raw(http, "/apis", f"{old},application/json")
    assert (code, kind, b"APIGroupList" in body) == (200, "application/json", True)
    assert (await raw(http, "/apis", old))[0] == 406


async def test_metrics_count_requests_streams_and_objects(http):
    watch = await http.watch(CONFIG_MAPS)
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    for n in range(3):
        await http.ask("GET", f"{CONFIG_MAPS}/b{n}")
        await http.ask("GET", f"/api/v1/namespaces/default/nonsense{n}/x")
    text = (await http.ask("GET", "/metrics")).text
    labels = 'group="",resource="configmaps",scope="resource",subresource="",verb="GET",version="v1"'
    assert f'apiserver_request_total{{code="404",{labels}}} 3.0' in text
    assert f"apiserver_request_duration_seconds_count{{{labels}}} 3.0" in text
    watched = labels.replace('"resource",sub', '"namespace",sub').replace("GET", "WATCH")
    assert f"apiserver_longrunning_requests{{{watched}}} 1.0" in text
    assert 'apiserver_storage_objects{resource="configmaps"} 1.0' in text
    assert "nonsense" not in text
    watch.close()

"""Answers in YAML and protobuf, watches through WebSockets and expired lists, the same on every API server."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator

import aiohttp
import pytest
import yaml
from tests.servers import Cluster

from isvc.apiserver.protobuf import decode
from isvc.kube.objects import Object

PROTOBUF = "application/vnd.kubernetes.protobuf"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


class Server:
    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.session = session

    async def ask(self, path: str, accept: str = "application/json") -> tuple[int, str, bytes]:
        async with self.session.get(self.url + path, headers={"Accept": accept}) as answer:
            return answer.status, answer.content_type, await answer.read()


@pytest.fixture
async def server(cluster: Cluster) -> AsyncIterator[Server]:
    connector = aiohttp.TCPConnector(ssl=False)
    headers = {"Authorization": f"Bearer {cluster.token}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield Server(cluster.url, session)


@pytest.fixture
async def deployment(server: Server) -> Object:
    name = f"media-{uuid.uuid4().hex[:8]}"
    container = {
        "name": "c",
        "image": "nginx",
        "resources": {"limits": {"cpu": "1500m"}},
        "readinessProbe": {"httpGet": {"port": "http"}},
        "ports": [{"name": "http", "containerPort": 80}],
        "env": [{"name": "A", "value": ""}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    template = {
        "metadata": {"labels": {"app": name}, "annotations": {"note": "ü"}},
        "spec": {"containers": [container], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]},
    }
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": {"app": name}},
        "template": template,
        "strategy": {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}},
    }
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}
    async with server.session.post(server.url + DEPLOYMENTS, json=body) as answer:
        assert answer.status == 201, await answer.text()
        return await answer.json()


def said(obj: object) -> object:
    """An object without what it does not say: protobuf has no difference between nothing and empty."""
    if isinstance(obj, dict):
        known = {key: said(value) for key, value in obj.items()}
        return {key: value for key, value in known.items() if value not in (None, "", 0, False, {}, [])}
    return [said(item) for item in obj] if isinstance(obj, list) else obj


async def test_protobuf_and_yaml_say_what_json_says(server, deployment):
    path = f"{DEPLOYMENTS}/{deployment['metadata']['name']}"
    code, kind, body = await server.ask(path, PROTOBUF)
    assert (code, kind) == (200, PROTOBUF)
    assert said(decode(body)) == said(json.loads((await server.ask(path))[2]))
    code, kind, body = await server.ask(path, "application/yaml")
    assert (code, kind) == (200, "application/yaml")
    assert yaml.safe_load(body) == json.loads((await server.ask(path))[2])


async def test_errors_and_discovery_come_in_the_media_type_asked_for(server):
    code, kind, body = await server.ask(f"{DEPLOYMENTS}/none", "application/yaml")
    assert (code, kind, yaml.safe_load(body)["reason"]) == (404, "application/yaml", "NotFound")
    code, kind, body = await server.ask(f"{DEPLOYMENTS}/none", PROTOBUF)
    assert (code, kind, body[:4]) == (404, PROTOBUF, b"k8s\0")
    code, _, body = await server.ask(f"{DEPLOYMENTS}?watch=1", "application/yaml")
    accepted = f"application/json;stream=watch, {PROTOBUF};stream=watch"
    assert (code, yaml.safe_load(body)["message"]) == (406, f"only the following media types are accepted: {accepted}")
    beta = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"
    assert (await server.ask("/apis", beta))[0] == 406
    assert yaml.safe_load((await server.ask("/apis", f"application/yaml,{beta}"))[2])["kind"] == "APIGroupList"
    assert (await server.ask(DEPLOYMENTS, "application/cbor"))[0] == 406


async def test_a_websocket_watches(server, deployment):
    name = deployment["metadata"]["name"]
    query = {"watch": "true", "fieldSelector": f"metadata.name={name}", "timeoutSeconds": "30"}
    async with server.session.ws_connect(server.url + DEPLOYMENTS, params=query, origin=server.url) as socket:
        event = await socket.receive_json()
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", name)
        async with server.session.delete(f"{server.url}{DEPLOYMENTS}/{name}") as answer:
            assert answer.status == 200
        assert (await socket.receive_json())["type"] == "DELETED"


async def test_metrics_have_the_names_that_people_know(server):
    async with server.session.get(f"{server.url}{DEPLOYMENTS}?watch=true"):
        text = (await server.ask("/metrics", "*/*"))[2].decode()
    for name in (
        "apiserver_request_total",
        "apiserver_request_duration_seconds_bucket",
        "apiserver_longrunning_requests",
        "apiserver_resource_objects",
        "process_resident_memory_bytes",
        "kubernetes_build_info",
    ):
        assert f"\n{name}" in text

"""The official Python client and its watch, as programs use them."""

from __future__ import annotations

import uuid
from typing import Any, cast

import pytest
from kubernetes import client as k8s
from kubernetes import config, watch
from kubernetes.client.exceptions import ApiException
from tests.servers import Cluster
from tests.waiting import wait_until


@pytest.fixture
def api(cluster: Cluster) -> k8s.ApiClient:
    return config.new_client_from_config(config_file=str(cluster.kubeconfig))


@pytest.fixture
def place(api: k8s.ApiClient) -> str:
    name = f"python-{uuid.uuid4().hex[:8]}"
    k8s.CoreV1Api(api).create_namespace(k8s.V1Namespace(metadata=k8s.V1ObjectMeta(name=name)))
    return name


def deployment(name: str) -> k8s.V1Deployment:
    container = k8s.V1Container(name="main", image="nginx:1", ports=[k8s.V1ContainerPort(container_port=80)])
    labels = {"app": name}
    return k8s.V1Deployment(
        metadata=k8s.V1ObjectMeta(name=name, labels=labels),
        spec=k8s.V1DeploymentSpec(
            selector=k8s.V1LabelSelector(match_labels=labels),
            template=k8s.V1PodTemplateSpec(
                metadata=k8s.V1ObjectMeta(labels=labels), spec=k8s.V1PodSpec(containers=[container])
            ),
        ),
    )


def test_a_deployment_through_its_life(api: k8s.ApiClient, place: str):
    apps = k8s.AppsV1Api(api)
    created = apps.create_namespaced_deployment(place, deployment("web"))
    assert created.spec.replicas == 1
    assert created.spec.template.spec is not None
    assert created.spec.template.spec.containers[0].image_pull_policy == "IfNotPresent"
    created.spec.replicas = 3
    assert apps.replace_namespaced_deployment("web", place, created).spec.replicas == 3
    with pytest.raises(ApiException) as refused:
        apps.replace_namespaced_deployment("web", place, created)
    assert refused.value.status == 409
    assert apps.patch_namespaced_deployment("web", place, {"spec": {"replicas": 2}}).spec.replicas == 2
    scale = apps.read_namespaced_deployment_scale("web", place)
    assert scale.spec is not None
    assert scale.spec.replicas == 2
    listed = apps.list_namespaced_deployment(place, label_selector="app=web").items
    assert [each.metadata and each.metadata.name for each in listed] == ["web"]
    apps.delete_namespaced_deployment("web", place)
    with pytest.raises(ApiException) as gone:
        apps.read_namespaced_deployment("web", place)
    assert gone.value.status == 404


def test_a_watch_tells_every_change_in_order(api: k8s.ApiClient, place: str):
    core = k8s.CoreV1Api(api)
    listed = core.list_namespaced_config_map(place)
    body = k8s.V1ConfigMap(metadata=k8s.V1ObjectMeta(name="a"), data={"x": "1"})
    core.create_namespaced_config_map(place, body)
    core.patch_namespaced_config_map("a", place, {"data": {"x": "2"}})
    core.delete_namespaced_config_map("a", place)
    seen = []
    stream = watch.Watch()
    assert listed.metadata is not None
    version = listed.metadata.resource_version
    for event in stream.stream(core.list_namespaced_config_map, place, resource_version=version, timeout_seconds=60):
        if event["object"].metadata.name == "a":
            seen.append((event["type"], (event["object"].data or {}).get("x")))
        if event["type"] == "DELETED":
            stream.stop()
    assert seen == [("ADDED", "1"), ("MODIFIED", "2"), ("DELETED", "2")]


def test_custom_objects(api: k8s.ApiClient, place: str):
    group = f"python-{uuid.uuid4().hex[:6]}.isvc.dev"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    extensions = k8s.ApiextensionsV1Api(api)
    extensions.create_custom_resource_definition(cast(k8s.V1CustomResourceDefinition, definition))
    established = watch.Watch()
    for event in established.stream(
        extensions.list_custom_resource_definition, field_selector=f"metadata.name=things.{group}", timeout_seconds=60
    ):
        conditions = {each.type: each.status for each in event["object"].status.conditions or []}
        if conditions.get("Established") == "True":
            established.stop()
    custom = k8s.CustomObjectsApi(api)
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"any": [1, {"a": None}]}}

    def create() -> Any:
        try:
            return custom.create_namespaced_custom_object(group, "v1", place, "things", thing)
        except ApiException as error:
            if error.status != 404:  # API servers serve a new kind a moment after it is established
                raise
            return None

    made = wait_until(create)
    assert made["spec"] == {"any": [1, {"a": None}]}
    custom.delete_namespaced_custom_object(group, "v1", place, "things", "t")
    extensions.delete_custom_resource_definition(f"things.{group}")

"""Pods through the webhook of a real API server: ours, others', in excluded namespaces, on a dry run, refused."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.pods.storage_initializer.sites import private_ca
from tests.waiting import until

from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.resource import (
    CONFIG_MAPS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
)
from isvc.serving import annotations as names
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.client import Client
from isvc.toolkit.webhook import Admission, WebhookServer
from isvc.webhooks.pods import PATH, PodMutator

CONFIG_MAP: Object = {
    "metadata": {"name": "inferenceservice-config", "namespace": "kserve", "resourceVersion": "1"},
    "data": {"credentials": json.dumps({"storageSecretNameAnnotation": "serving.kserve.io/storageSecretName"})},
}


@pytest.fixture
async def webhook(client: Client, namespace: str, tmp_path: Path) -> AsyncIterator[None]:
    """The webhook, registered as KServe registers it, but for this test's namespaces only."""
    private_ca(tmp_path)
    server = WebhookServer(
        0,
        tmp_path,
        {PATH: Admission(PodMutator(MemoryReader([(CONFIG_MAPS, CONFIG_MAP)]), client, "kserve"))},
        host="127.0.0.1",
    )
    await server.start()
    server.open()
    name = f"pods-{uuid.uuid4().hex[:8]}"
    mine = [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": [namespace, f"{namespace}-x"]}]
    hook = {
        "name": "inferenceservice.kserve-webhook-server.pod-mutator",
        "clientConfig": {
            "url": f"https://127.0.0.1:{server.port}{PATH}",
            "caBundle": base64.b64encode((tmp_path / "cabundle.crt").read_bytes()).decode(),
        },
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "reinvocationPolicy": "IfNeeded",
        "admissionReviewVersions": ["v1"],
        "namespaceSelector": {"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}, *mine]},
        "objectSelector": {"matchExpressions": [{"key": names.SERVICE, "operator": "Exists"}]},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    }
    configuration = {"metadata": {"name": name}, "webhooks": [hook]}
    await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, configuration)
    try:
        await until(lambda: _is_mutated(client, namespace))
        yield
    finally:
        await client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, name)
        await server.stop()


async def _is_mutated(client: Client, namespace: str) -> bool:
    """API servers notice a new webhook after a while."""
    made = await _dry_run(client, namespace, pod("probe", "pvc://claim"))
    return bool(made["spec"].get("volumes"))


def pod(name: str, uri: str, annotations: dict[str, str] | None = None, *, ours: bool = True) -> Object:
    labels = {names.SERVICE: "iris"} if ours else {"app": "web"}
    return {
        "metadata": {"name": name, "labels": labels, "annotations": {names.SOURCE_URI: uri, **(annotations or {})}},
        "spec": {"containers": [{"name": "kserve-container", "image": "example.com/server:1"}]},
    }


async def _create(client: Client, namespace: str, made: Object) -> Object:
    placed = {**made, "metadata": {**made["metadata"], "namespace": namespace}}
    return await client.create(PODS, placed)


async def _dry_run(client: Client, namespace: str, made: Object) -> Any:
    body = {"apiVersion": "v1", "kind": "Pod", **made}
    return await client.request("POST", PODS.path(namespace), params={"dryRun": "All"}, body=body)


async def test_a_pod_gets_its_model_and_credentials(client: Client, namespace: str, webhook: None) -> None:
    keys = {"metadata": {"name": "keys", "namespace": namespace}, "stringData": {"HF_TOKEN": "t"}}
    await client.create(SECRETS, keys)
    account = {"metadata": {"name": "default", "namespace": namespace}, "secrets": [{"name": "keys"}]}
    await client.create(SERVICE_ACCOUNTS, account)
    made = await _create(client, namespace, pod("ours", "hf://org/iris"))
    (downloader,) = made["spec"]["initContainers"]
    assert downloader["args"] == ["hf://org/iris", "/mnt/models"]
    assert downloader["env"][0]["valueFrom"]["secretKeyRef"] == {"name": "keys", "key": "HF_TOKEN"}
    again = {"metadata": {**pod("again", "")["metadata"], "annotations": made["metadata"]["annotations"]}}
    copied = await _create(client, namespace, {**again, "spec": made["spec"]})
    assert copied["spec"] == made["spec"]


async def test_others_are_left_alone(client: Client, namespace: str, webhook: None) -> None:
    other = await _create(client, namespace, pod("other", "hf://org/iris", ours=False))
    assert "initContainers" not in other["spec"]
    excluded = {"metadata": {"name": f"{namespace}-x", "labels": {"control-plane": "manager"}}}
    await client.create(NAMESPACES, excluded)
    system = await _create(client, f"{namespace}-x", pod("system", "hf://org/iris"))
    assert "initContainers" not in system["spec"]


async def test_a_dry_run_shows_the_pod_and_keeps_nothing(client: Client, namespace: str, webhook: None) -> None:
    shown = await _dry_run(client, namespace, pod("shown", "pvc://claim/iris"))
    assert shown["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == "claim"
    assert not (await client.list(PODS, namespace)).items


async def test_a_refusal_names_the_secret(client: Client, namespace: str, webhook: None) -> None:
    account = {"metadata": {"name": "default", "namespace": namespace}}
    await client.create(SERVICE_ACCOUNTS, account)
    named = {"serving.kserve.io/storageSecretName": "gone"}
    with pytest.raises(ApiError, match='secret "gone"') as refused:
        await _create(client, namespace, pod("refused", "s3://b/m", named))
    assert refused.value.status_code == 500

"""Our CRDs on a real API server: they install, and objects of every kind come in and out."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.definitions import PATIENCE, is_served
from tests.waiting import until

from isvc.api.kinds import KINDS, KindRow
from isvc.api.kinds.crds import crd
from isvc.api.llm.conversion import CRITICALITY, convert
from isvc.api.resources import INFERENCE_SERVICES, LLM_INFERENCE_SERVICES, LLM_INFERENCE_SERVICES_V1ALPHA1
from isvc.kube.errors import AlreadyExists, Invalid
from isvc.kube.objects import dig
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, SECRETS
from isvc.programs.cluster_manifests import OPEN, kinds
from isvc.toolkit.client import PatchKind
from isvc.toolkit.failure import Unreachable
from isvc.toolkit.rotation import Certificates
from isvc.toolkit.webhook import Conversion, WebhookServer


async def install(client: Any, definition: KindRow) -> None:
    with contextlib.suppress(AlreadyExists, Unreachable):
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd(definition, described=True))

    async def established() -> bool:
        found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, str(definition.resource))
        conditions = {each["type"]: each["status"] for each in dig(found, "status", "conditions") or []}
        assert conditions.get("NonStructuralSchema", "False") == "False", found["status"]
        return conditions.get("Established") == "True" and conditions.get("NamesAccepted") == "True"

    await until(established, within=PATIENCE)
    await until(lambda: is_served(client, definition.resource), within=PATIENCE)


@pytest.mark.parametrize("definition", KINDS, ids=lambda definition: definition.resource.plural)
async def test_every_crd_is_established(client: Any, definition: KindRow):
    await install(client, definition)


async def test_minimal_kinds_are_taken(client: Any):
    """Under another group, because those of ours may be there; nothing is stored."""
    made = kinds("kserve", minimal=True)
    assert len(made) == len(KINDS)
    for each in made:
        spec = {**each["spec"], "group": "minimal.example.com"}
        named = {**each, "metadata": {"name": f"{spec['names']['plural']}.{spec['group']}"}, "spec": spec}
        path = CUSTOM_RESOURCE_DEFINITIONS.path()
        taken = await client.request("POST", path, params={"dryRun": "All", "fieldValidation": "Strict"}, body=named)
        for version in taken["spec"]["versions"]:
            assert dig(version, "schema", "openAPIV3Schema", "properties", "spec") == OPEN


async def test_a_service_keeps_its_fields_and_bad_ones_are_refused(client: Any, namespace: str):
    await install(client, KINDS[0])
    model = {
        "modelFormat": {"name": "sklearn"},
        "storageUri": "gs://a",
        "name": "",
        "resources": {"limits": {"cpu": 1}},
    }
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "iris", "namespace": namespace},
        "spec": {
            "predictor": {"model": model, "nodeSelector": {"a": "b"}, "storageUris": [{"uri": "gs://b"}], "no": 1}
        },
    }
    stored = await client.create(INFERENCE_SERVICES, service)
    predictor = stored["spec"]["predictor"]
    assert predictor["nodeSelector"] == {"a": "b"}
    assert predictor["storageUris"] == [{"uri": "gs://b", "mountPath": "/mnt/models"}]
    assert "no" not in predictor
    bad = service | {"metadata": {"name": "bad", "namespace": namespace}}
    bad["spec"] = {"predictor": {"model": model, "scaleMetric": "luck"}}
    with pytest.raises(Invalid, match=r"spec\.predictor\.scaleMetric"):
        await client.create(INFERENCE_SERVICES, bad)


@pytest.fixture
async def converting(client: Any, namespace: str, tmp_path: Path) -> AsyncIterator[None]:
    """The LLM kind, with its versions converted by our webhook."""
    definition = next(each for each in KINDS if each.resource is LLM_INFERENCE_SERVICES)
    await install(client, definition)
    certificates = Certificates(client, namespace=namespace, secret="cert", hosts=["127.0.0.1"], cert_dir=tmp_path)
    await certificates.ensure()
    server = WebhookServer(0, tmp_path, {"/convert": Conversion(convert)}, host="127.0.0.1")
    await server.start()
    secret = await client.get(SECRETS, "cert", namespace)
    webhook = {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": f"https://127.0.0.1:{server.port}/convert", "caBundle": secret["data"]["ca.crt"]},
    }
    await _convert_with(client, {"strategy": "Webhook", "webhook": webhook})
    yield
    await _convert_with(client, {"strategy": "None", "webhook": None})
    await server.stop()


async def _convert_with(client: Any, how: dict[str, Any]) -> None:
    name = str(LLM_INFERENCE_SERVICES)
    await client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, {"spec": {"conversion": how}}, kind=PatchKind.MERGE)


async def test_a_client_of_the_older_version_destroys_nothing(client: Any, namespace: str, converting: None):
    older = LLM_INFERENCE_SERVICES_V1ALPHA1
    service = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "LLMInferenceService",
        "metadata": {"name": "llama", "namespace": namespace},
        "spec": {"model": {"uri": "hf://a", "criticality": "Critical"}, "replicas": 1},
    }

    async def converted() -> Any:
        """API servers take a moment to notice that a CRD changed."""
        with contextlib.suppress(AlreadyExists):
            await client.create(older, service)
        stored = await client.get(LLM_INFERENCE_SERVICES, "llama", namespace)
        if stored["metadata"].get("annotations") == {CRITICALITY: "Critical"}:
            return stored
        await client.delete(older, "llama", namespace)
        return None

    stored = await until(converted, within=PATIENCE)
    assert stored["spec"]["model"] == {"uri": "hf://a"}
    stored["spec"]["kvCacheOffloading"] = {"cpu": "1Gi"}
    await client.update(LLM_INFERENCE_SERVICES, stored)
    read = await client.get(older, "llama", namespace)
    assert read["spec"] == {"model": {"uri": "hf://a", "criticality": "Critical"}, "replicas": 1}
    read["spec"]["replicas"] = 2
    await client.update(older, read)
    final = await client.get(LLM_INFERENCE_SERVICES, "llama", namespace)
    assert final["spec"]["replicas"] == 2
    assert final["spec"]["kvCacheOffloading"] == {"cpu": "1Gi", "evictionPolicy": "lru"}
    assert final["metadata"]["annotations"] == {CRITICALITY: "Critical"}

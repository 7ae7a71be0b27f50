"""Our CRDs on a real API server: they install, and objects of every kind come in and out."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from tests.waiting import until

from isvc.api.crds import DEFINITIONS, Definition, crd
from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.errors import AlreadyExists, Invalid
from isvc.kube.objects import dig
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS


async def install(client: Any, definition: Definition) -> None:
    with contextlib.suppress(AlreadyExists):
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd(definition, described=True))

    async def established() -> bool:
        found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, str(definition.resource))
        conditions = {each["type"]: each["status"] for each in dig(found, "status", "conditions") or []}
        assert conditions.get("NonStructuralSchema", "False") == "False", found["status"]
        return conditions.get("Established") == "True" and conditions.get("NamesAccepted") == "True"

    await until(established)


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.resource.plural)
async def test_every_crd_is_established(client: Any, definition: Definition):
    await install(client, definition)


async def test_a_service_keeps_its_fields_and_bad_ones_are_refused(client: Any, namespace: str):
    await install(client, DEFINITIONS[0])
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

    async def created() -> Any:
        return await client.create(INFERENCE_SERVICES, service)

    stored = await created()
    predictor = stored["spec"]["predictor"]
    assert predictor["nodeSelector"] == {"a": "b"}
    assert predictor["storageUris"] == [{"uri": "gs://b", "mountPath": "/mnt/models"}]
    assert "no" not in predictor
    bad = service | {"metadata": {"name": "bad", "namespace": namespace}}
    bad["spec"] = {"predictor": {"model": model, "scaleMetric": "luck"}}
    with pytest.raises(Invalid, match=r"spec\.predictor\.scaleMetric"):
        await client.create(INFERENCE_SERVICES, bad)

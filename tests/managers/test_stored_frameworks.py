"""Services as an older KServe stored them: `predictor.sklearn` and the like, and modes by their old names."""

from __future__ import annotations

from tests.cluster.lifecycles.stage import RUNTIME, Platform, running, set_up
from tests.waiting import until

from isvc.api.inferenceservice.frameworks import FRAMEWORKS
from isvc.api.resources import INFERENCE_SERVICES, SERVING_RUNTIMES
from isvc.kube.conditions import is_true
from isvc.kube.objects import Object, dig
from isvc.kube.resource import DEPLOYMENTS
from isvc.toolkit.client import Client, kubeconfig


def stored(namespace: str, framework: str) -> Object:
    annotations = {"serving.kserve.io/deploymentMode": "RawDeployment"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": framework, "namespace": namespace, "annotations": annotations},
        "spec": {"predictor": {framework: {"storageUri": "gs://models/old", "name": "", "resources": {}}}},
    }


def runtime(namespace: str) -> Object:
    formats = [{"name": framework, "version": "1", "autoSelect": True} for framework in FRAMEWORKS]
    return {
        **RUNTIME,
        "kind": "ServingRuntime",
        "metadata": {"name": "every-framework", "namespace": namespace},
        "spec": {**RUNTIME["spec"], "supportedModelFormats": formats},  # type: ignore[dict-item]
    }


async def test_the_old_form_is_served(cluster, client, namespace) -> None:
    platform = Platform(client)

    async def all_ready() -> bool:
        await platform.make_ready(namespace)
        services = (await client.list(INFERENCE_SERVICES, namespace)).items
        return all(is_true(dig(service, "status", "conditions") or (), "Ready") for service in services)

    await set_up(client, namespace, "Knative")
    await client.create(SERVING_RUNTIMES, runtime(namespace))
    for framework in FRAMEWORKS:
        await client.create(INFERENCE_SERVICES, stored(namespace, framework))
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace):
        await until(all_ready, "all services are ready", every=0.2)
    for framework in FRAMEWORKS:
        deployment = await client.get(DEPLOYMENTS, f"{framework}-predictor", namespace)
        assert dig(deployment, "spec", "template", "spec", "containers", 0, "image") == "server:1"
        source = dig(deployment, "spec", "template", "metadata", "annotations")
        assert source["internal.serving.kserve.io/storage-initializer-sourceuri"] == "gs://models/old"
        service = await client.get(INFERENCE_SERVICES, framework, namespace)
        assert framework in service["spec"]["predictor"], "the spec is its author's"

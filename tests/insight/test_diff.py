"""What `isvc diff` announces is what the controller then does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import yaml
from click.testing import CliRunner, Result
from tests.cluster.lifecycles.stage import Platform, Running, running, set_up
from tests.waiting import until

from isvc import render
from isvc.api.resources import INFERENCE_SERVICES, SERVING_RUNTIMES
from isvc.cli import main
from isvc.kube.objects import Key, Object, name_of
from isvc.kube.resource import CONFIG_MAPS
from isvc.toolkit.client import Client, kubeconfig


def runtime(name: str, image: str) -> Object:
    return {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ServingRuntime",
        "metadata": {"name": name},
        "spec": {
            "supportedModelFormats": [{"name": name, "autoSelect": True}],
            "protocolVersions": ["v1", "v2"],
            "containers": [{"name": "kserve-container", "image": image, "args": ["--model_name={{.Name}}"]}],
        },
    }


def service(number: int) -> Object:
    """Of either runtime; some chosen by name, some stopped, some that asked for no updates, some with its own image."""
    model: Object = {"modelFormat": {"name": "one" if number % 3 else "two"}, "storageUri": "gs://models/first"}
    annotations = {}
    if number % 7 == 0:
        model["runtime"] = "one"
        model["modelFormat"] = {"name": "one"}
    if number % 11 == 0:
        annotations["serving.kserve.io/stop"] = "true"
    if number % 13 == 0:
        annotations["serving.kserve.io/disable-auto-update"] = "true"
    if number % 17 == 0:
        model["image"] = "own:1"
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": f"s-{number:03d}", "annotations": annotations},
        "spec": {"predictor": {"model": {**model, "name": "", "resources": {}}, "minReplicas": 2}},
    }


async def diff(cluster, namespace: str, folder: Path, *documents: Object, arguments: tuple[str, ...] = ()) -> Result:
    path = folder / "change.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    command = ["diff", "-f", str(path), "--kubeconfig", str(cluster.kubeconfig), "-n", namespace, *arguments]
    command += ["--system-namespace", namespace]
    return await asyncio.to_thread(CliRunner().invoke, main, command)


async def _isvc(cluster, *arguments: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, main, [*arguments, "--kubeconfig", str(cluster.kubeconfig)])


async def settled(state: Running, keys: set[Key]) -> None:
    await until(lambda: state.has_seen_to(keys), "the controller has nothing to do", within=120)


async def make_ready(client: Client, namespace: str) -> None:
    platform = Platform(client)

    async def all_ready() -> bool:
        await platform.make_ready(namespace)
        services = (await client.list(INFERENCE_SERVICES, namespace)).items
        return all("stop" in str(each["metadata"].get("annotations")) or _is_ready(each) for each in services)

    await until(all_ready, "all services are ready", within=60, every=0.5)


def _is_ready(obj: Object) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


async def test_shows_what_documents_change(cluster, client, namespace, tmp_path) -> None:
    await set_up(client, namespace, "Standard")
    await client.create(SERVING_RUNTIMES, runtime("one", "server:1"), namespace)
    config = await client.get(CONFIG_MAPS, "inferenceservice-config", namespace)
    (first,) = render(service(1), extra=[runtime("one", "server:1")], config=config, namespace=namespace).admitted
    await client.create(INFERENCE_SERVICES, first)
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace) as state:
        await settled(state, {Key(namespace, name_of(first))})
        await make_ready(client, namespace)
        await settled(state, {Key(namespace, name_of(first))})

        new = await diff(cluster, namespace, tmp_path, service(2))
        assert new.exit_code == 1
        assert "Deployment s-002-predictor would be created\n" in new.stdout
        assert "1 service would change: children 4 created; 0 pods would restart" in new.stdout

        more = {**first, "spec": {"predictor": {**first["spec"]["predictor"], "maxReplicas": 5}}}
        scaled = await diff(cluster, namespace, tmp_path, more)
        assert "HorizontalPodAutoscaler s-001-predictor would be changed\n" in scaled.stdout
        assert "-  maxReplicas: 2\n+  maxReplicas: 5\n" in scaled.stdout
        assert "children 1 changed; 0 pods would restart" in scaled.stdout

        ingress = {**json.loads(config["data"]["ingress"]), "ingressDomain": "elsewhere.org"}
        config["data"]["ingress"] = json.dumps(ingress)
        moved = await diff(cluster, namespace, tmp_path, config)
        assert "Ingress s-001 would be changed\n" in moved.stdout
        assert "elsewhere.org" in moved.stdout

        merged = await _isvc(cluster, "effective", name_of(first), "-n", namespace, "--system-namespace", namespace)
        sources = {line.split()[0]: line.split()[2:] for line in merged.stdout.splitlines()}
        assert sources["containers[kserve-container].image"] == ["runtime", "one"], merged.output
        assert sources["containers[kserve-container].args[0]"] == ["runtime", "one"]
        assert sources["containers[kserve-container].env[INFERENCE_SERVICE_NAME].value"] == ["controller"]
        assert sources["restartPolicy"] == ["default"]

        metadata = {"name": name_of(first), "annotations": {"serving.kserve.io/stop": "true"}}
        stopped = await diff(cluster, namespace, tmp_path, {**first, "metadata": metadata})
        assert "Deployment s-001-predictor would be deleted; 1 pod would end\n" in stopped.stdout
        assert "; 0 pods would restart; 1 pod would end\n" in stopped.stdout
        assert "ownerReferences" not in stopped.stdout

        refused = await diff(cluster, namespace, tmp_path, {**first, "metadata": {"name": "Wrong"}})
        assert refused.exit_code == 2
        assert "change.yaml:1: InferenceService Wrong: " in refused.stderr


def test_no_cluster_is_an_error_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "service.yaml"
    path.write_text(yaml.safe_dump(service(1)))
    result = CliRunner().invoke(main, ["diff", "-f", str(path), "--kubeconfig", str(tmp_path / "none")])
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1

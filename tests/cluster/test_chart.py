"""The Helm charts: linted, equal to `isvc manifests`, installed, upgraded and rolled back, and run as they say."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.lifecycles.stage import RUNTIME, set_up
from tests.ports import free_port
from tests.production.installation import ACCOUNT_KINDS, RESOURCES
from tests.servers import Cluster, discard, start
from tests.waiting import until

from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICES,
    SERVING_RUNTIMES,
)
from isvc.cli import chart
from isvc.kube.errors import AlreadyExists
from isvc.kube.objects import Object, dig
from isvc.kube.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, NAMESPACES, SECRETS
from isvc.toolkit import kubeconfig
from isvc.toolkit.client import Client

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
CHARTS = ROOT / "charts"
EVERYTHING = [f"monitoring.{each}=true" for each in ("podMonitor", "serviceMonitor", "prometheusRule", "dashboard")] + [
    "networkPolicy.enabled=true",
    "priorityClass.create=true",
    'manager.tolerations=[{"operator": "Exists"}]',
]


def helm(*arguments: object, cluster: Cluster | None = None, folder: Path | None = None) -> str:
    environment = dict(os.environ)
    if cluster is not None:
        homes = {name: str(folder) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        environment |= {"KUBECONFIG": str(cluster.kubeconfig), **homes}
    command = [str(BIN / "helm"), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def settings(values: list[str], flag: str = "--set") -> list[str]:
    return [part for value in values for part in (flag, value)]


def objects(text: str) -> dict[tuple[str, ...], Object]:
    found = (each for each in yaml.load_all(text, yaml.CSafeLoader) if each)
    return {
        (each["apiVersion"], each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in found
    }


def isvc_manifests(*arguments: str) -> dict[tuple[str, ...], Object]:
    command = [str(BIN / "isvc"), "manifests", *arguments]
    return objects(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_charts_are_sound():
    printed = helm("lint", "--strict", CHARTS / "isvc", CHARTS / "isvc-crds")
    assert "2 chart(s) linted, 0 chart(s) failed" in printed


@pytest.mark.parametrize(
    "values",
    [
        [],
        ["certificates.source=cert-manager", "manager.replicas=3"],
        ["certificates.source=secret", "certificates.caBundle=QUJD", "llmisvc.enabled=false"],
        ["manager.enabled=false", "presets.create=false", "config.create=false", "webhooks.enabled=false"],
        ["llmisvc.inManager=true", "certificates.source=cert-manager", *EVERYTHING[:-1]],
        ["runtimes.tag=v1", "image.tag=v2", "monitoring.labels.team=ml", *EVERYTHING[:-1]],
    ],
    ids=["defaults", "cert-manager", "given certificates", "parts", "one process", "everything"],
)
def test_plain_manifests_are_those_of_the_chart(values: list[str]):
    chart = helm("template", "isvc", CHARTS / "isvc", "-n", "serving", *settings(values))
    assert isvc_manifests("-n", "serving", *settings(values)) == objects(chart)


def test_plain_manifests_for_some_namespaces_are_those_of_the_chart(tmp_path: Path):
    values = tmp_path / "values.yaml"
    values.write_text("namespaces: [team-a, serving]\nwebhooks: {enabled: false}\nruntimes: {create: false}\n")
    plain = isvc_manifests("-n", "serving", "-f", str(values))
    assert plain == objects(helm("template", "isvc", CHARTS / "isvc", "-n", "serving", "-f", values))
    assert not any("Cluster" in kind for _, kind, _, _ in plain)


def test_plain_kinds_are_those_of_the_chart_and_always_convert():
    chart = objects(helm("template", "isvc-crds", CHARTS / "isvc-crds", "-n", "serving"))
    assert isvc_manifests("--crds", "-n", "serving") == chart
    several = [crd for crd in chart.values() if len(crd["spec"]["versions"]) > 1]
    assert several
    for crd in several:
        service = dig(crd, "spec", "conversion", "webhook", "clientConfig", "service")
        assert service["namespace"] == "serving"


def test_a_value_that_the_chart_does_not_have_is_refused():
    command = [str(BIN / "isvc"), "manifests", "--set", "manager.replcas=2"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "no value manager.replcas" in refused.stderr


def test_managers_are_found_by_their_labels():
    planes = {
        name: each["spec"]["template"]["metadata"]["labels"]["control-plane"]
        for (_, kind, _, name), each in isvc_manifests().items()
        if kind == "Deployment"
    }
    assert planes == {
        "kserve-controller-manager": "kserve-controller-manager",
        "llmisvc-controller-manager": "llminferenceservice-kserve-controller-manager",
    }


@pytest.mark.parametrize("in_manager", ["true", "false"])
def test_services_lead_to_ports_of_pods(in_manager: str):
    manifests = isvc_manifests("--set", f"llmisvc.inManager={in_manager}").values()
    templates = [each["spec"]["template"] for each in manifests if each["kind"] == "Deployment"]
    assert len(templates) == (1 if in_manager == "true" else 2)
    ports = {
        (template["metadata"]["labels"]["control-plane"], port["name"])
        for template in templates
        for port in template["spec"]["containers"][0]["ports"]
    }
    services = [each["spec"] for each in manifests if each["kind"] == "Service"]
    assert len(services) == 4
    for service in services:
        assert (service["selector"]["control-plane"], service["ports"][0]["targetPort"]) in ports


def test_pods_are_restricted():
    """As the Pod Security Standard `restricted` asks for, and with a read-only root."""
    for manifest in isvc_manifests(*settings(EVERYTHING)).values():
        if manifest["kind"] != "Deployment":
            continue
        pod = manifest["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert {*pod} & {"hostNetwork", "hostPID", "hostIPC"} == set()
        assert all({*volume} <= {"name", "emptyDir", "secret"} for volume in pod["volumes"])
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}


SERVICE: Object = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "iris", "namespace": "default"},
    "spec": {
        "predictor": {
            "model": {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://models/iris", "name": "", "resources": {}}
        }
    },
}


LLM_SERVICE: Object = {
    "apiVersion": "serving.kserve.io/v1alpha2",
    "kind": "LLMInferenceService",
    "metadata": {"name": "tulip", "namespace": "default"},
    "spec": {"model": {"uri": "hf://lab/tulip", "name": "lab/tulip"}},
}


@asynccontextmanager
async def deployed(cluster: Cluster, client: Client, folder: Path, deployment: Object) -> Any:
    """The program of a Deployment as its pod would run it: its command, arguments and account."""
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]
    namespace = deployment["metadata"]["namespace"]
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{pod['serviceAccountName']}/token"
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = (await client.request("POST", path, body=review))["status"]["token"]
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    place = folder / deployment["metadata"]["name"]
    place.mkdir()
    (place / "kubeconfig").write_text(json.dumps(config))
    ports = [f"--webhook-port={free_port()}", f"--health-probe-addr=127.0.0.1:{free_port()}"]
    if "--with-llmisvc" in container["args"]:
        ports += [f"--llmisvc-webhook-port={free_port()}", f"--llmisvc-metrics-addr=127.0.0.1:{free_port()}"]
    environment = {"KUBECONFIG": str(place / "kubeconfig"), "TMPDIR": str(place), "POD_NAMESPACE": namespace}
    with (place / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            str(BIN / container["command"][0]),
            *container["args"],
            *ports,
            f"--metrics-addr=127.0.0.1:{free_port()}",
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
    try:
        yield place / "log"
    finally:
        process.terminate()
        await process.wait()
    assert "forbidden" not in (place / "log").read_text().lower(), (place / "log").read_text()[-3000:]


async def test_within_namespaces(client: Client, cluster: Cluster, namespace: str, tmp_path: Path):
    """With Roles alone: services of the namespaces are reconciled, others are nobody's, and nothing is refused."""
    other = f"{namespace}-other"
    for name in ("kserve", other):
        with suppress(AlreadyExists):
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    await set_up(client, "kserve", "Standard")
    chosen = {"namespaces": [namespace], "llmisvc": {"enabled": False}, "webhooks": {"enabled": False}}
    manifests = chart.render("kserve", chosen)
    accounts = [each for each in manifests if each["kind"] in ACCOUNT_KINDS]
    assert {each["kind"] for each in accounts} == {"ServiceAccount", "Role", "RoleBinding"}
    for each in accounts:
        await client.create(RESOURCES[each["kind"]], each)
    runtime = {**RUNTIME, "kind": "ServingRuntime", "metadata": {"name": "own", "namespace": namespace}}
    await client.create(SERVING_RUNTIMES, runtime)
    [deployment] = [each for each in manifests if each["kind"] == "Deployment"]
    async with deployed(cluster, client, tmp_path, deployment) as log:
        for place in (other, namespace):
            service = {**SERVICE, "metadata": {"name": "iris", "namespace": place}}
            await client.create(INFERENCE_SERVICES, service)

        async def reconciled() -> bool:
            return bool((await client.list(DEPLOYMENTS, namespace)).items)

        await until(reconciled, "the service has its Deployment", within=120)
        assert not (await client.get(INFERENCE_SERVICES, "iris", other)).get("status")
        assert f"acting in the namespaces {namespace} alone" in log.read_text()


async def test_install_upgrade_and_roll_back(request: pytest.FixtureRequest, tmp_path: Path):
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster = start(request.config.getoption("--cluster"), folder)
    try:
        async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client:
            await _install(cluster, client, tmp_path)
    finally:
        discard(cluster)


async def _install(cluster: Cluster, client: Client, folder: Path) -> None:
    def run(*arguments: object) -> str:
        return helm(*arguments, "-n", "kserve", cluster=cluster, folder=folder)

    async def replicas() -> int:
        return int((await client.get(DEPLOYMENTS, "kserve-controller-manager", "kserve"))["spec"]["replicas"])

    standard = ["config.sections.deploy.defaultDeploymentMode=Standard", "networkPolicy.enabled=true"]
    run("install", "isvc-crds", CHARTS / "isvc-crds", "--create-namespace", "--wait")
    run("install", "isvc", CHARTS / "isvc", *settings(standard))  # before any webhook answers
    run("uninstall", "isvc", "--wait")
    standard.append("webhooks.enabled=false")  # without a network they could not be reached
    run("install", "isvc", CHARTS / "isvc", *settings(standard))
    assert await client.list(LLM_INFERENCE_SERVICE_CONFIGS, "kserve")
    assert (await client.get(CLUSTER_SERVING_RUNTIMES, "kserve-sklearnserver"))["spec"]["containers"]
    deployments = (await client.list(DEPLOYMENTS, "kserve")).items
    assert len(deployments) == 2

    manager, llmisvc = sorted(deployments, key=lambda each: str(each["metadata"]["name"]))
    async with deployed(cluster, client, folder, manager), deployed(cluster, client, folder, llmisvc):
        await client.create(INFERENCE_SERVICES, SERVICE)

        async def reconciled() -> bool:
            return bool((await client.list(DEPLOYMENTS, "default")).items)

        async def certified() -> bool:
            crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "llminferenceservices.serving.kserve.io")
            return bool(dig(crd, "spec", "conversion", "webhook", "clientConfig", "caBundle"))

        await until(reconciled, "the service has its Deployment", within=120)
        await until(certified, "the conversion webhook is trusted", within=120)

    run("upgrade", "isvc", CHARTS / "isvc", "--reuse-values", "--set", "llmisvc.inManager=true")
    [both] = (await client.list(DEPLOYMENTS, "kserve")).items
    (folder / "one process").mkdir()
    async with deployed(cluster, client, folder / "one process", both):
        await client.create(INFERENCE_SERVICES, {**SERVICE, "metadata": {"name": "rose", "namespace": "default"}})
        await client.create(LLM_INFERENCE_SERVICES, LLM_SERVICE)

        async def both_reconciled() -> bool:
            found = {each["metadata"]["name"] for each in (await client.list(DEPLOYMENTS, "default")).items}
            return {"rose-predictor", "tulip-kserve"} <= found

        await until(both_reconciled, "both services have their Deployments", within=120)

    run("upgrade", "isvc", CHARTS / "isvc", "--reuse-values", "--set", "manager.replicas=2")
    assert await replicas() == 2
    run("upgrade", "isvc-crds", CHARTS / "isvc-crds")
    crd = await client.get(CUSTOM_RESOURCE_DEFINITIONS, "llminferenceservices.serving.kserve.io")
    assert dig(crd, "spec", "conversion", "webhook", "clientConfig", "caBundle"), "an upgrade keeps the conversion"
    run("rollback", "isvc", 1)
    assert await replicas() == 1
    assert (await client.get(CONFIG_MAPS, "inferenceservice-config", "kserve"))["data"]["deploy"]
    run("uninstall", "isvc")
    assert not (await client.list(DEPLOYMENTS, "kserve")).items
    assert await client.get(INFERENCE_SERVICES, "iris", "default"), "services outlive the managers"
    assert await client.get(NAMESPACES, "kserve")
    assert await client.get(SECRETS, "kserve-webhook-server-cert", "kserve")

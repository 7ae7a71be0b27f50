"""The Helm charts installed, upgraded, rolled back and uninstalled, with their managers run as they say."""

from __future__ import annotations

import base64
import os
import subprocess
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest
from tests.burial import bury
from tests.cluster.lifecycles.stage import RUNTIME, set_up
from tests.packaging.test_chart import BIN, CHARTS, settings
from tests.production.chart_pods import Pod, running
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
from isvc.kube.errors import AlreadyExists, ApiError, InternalError
from isvc.kube.objects import Object, name_of
from isvc.kube.resource import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    SECRETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.serving.thirdparty import INFERENCE_POOLS
from isvc.toolkit.client import Client, PatchKind, kubeconfig
from isvc.toolkit.clock import SystemClock
from isvc.wire.x509.issue import Pair, issue_authority, issue_serving

QUICKLY = ["--disable-openapi-validation"]  # Helm's own, of every object; the API server's remains
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
    "spec": {"model": {"uri": "hf://lab/tulip", "name": "lab/tulip"}, "router": {"scheduler": {}}},
}


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
    async with running(cluster, client, tmp_path, deployment) as pod:
        for place in (other, namespace):
            service = {**SERVICE, "metadata": {"name": "iris", "namespace": place}}
            await client.create(INFERENCE_SERVICES, service)

        async def reconciled() -> bool:
            return bool((await client.list(DEPLOYMENTS, namespace)).items)

        await until(reconciled, "the service has its Deployment", within=120)
        assert not (await client.get(INFERENCE_SERVICES, "iris", other)).get("status")
        assert f"acting in the namespaces {namespace} alone" in pod.log.read_text()
    await bury(client, other)


async def test_install_upgrade_and_roll_back(request: pytest.FixtureRequest, tmp_path: Path):
    """With webhooks, which the API server asks through their Services."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster = start(request.config.getoption("--cluster"), folder)
    try:
        async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client:
            await _install(cluster, client, tmp_path)
    finally:
        discard(cluster)


class Platform:
    """Who installs the charts on a cluster that nobody has used."""

    def __init__(self, cluster: Cluster, client: Client, folder: Path) -> None:
        self.cluster, self.client, self.folder = cluster, client, folder

    def helm(self, *arguments: object) -> None:
        homes = {name: str(self.folder) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        environment = {**os.environ, "KUBECONFIG": str(self.cluster.kubeconfig), **homes}
        command = [
            str(BIN / "helm"),
            *map(str, arguments),
            "-n",
            "kserve",
            *(QUICKLY if "upgrade" in arguments else ()),
        ]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr[-3000:]

    async def deployments(self) -> list[Object]:
        return sorted((await self.client.list(DEPLOYMENTS, "kserve")).items, key=name_of)

    def running(self, deployment: Object, attempt: str = "first") -> AbstractAsyncContextManager[Pod]:
        return running(self.cluster, self.client, self.folder / attempt, deployment)

    async def create(self, resource: Resource, manifest: Object, name: str) -> Object:
        """As soon as the API server has seen where the webhooks are, and whom to trust."""

        async def created() -> Object | None:
            with suppress(InternalError):
                return await self.client.create(
                    resource, {**manifest, "metadata": {"name": name, "namespace": "default"}}
                )
            return None

        return dict(await until(created, f"{name} is admitted", within=120, every=0.2))

    async def refuses(self) -> None:
        """By the webhook: the API server itself has nothing against this name."""
        with pytest.raises(ApiError, match=r"inferenceservice\.kserve-webhook-server\.validator"):
            await self.create(INFERENCE_SERVICES, SERVICE, "1iris")

    async def deploys(self, *names: str) -> None:
        async def deployed() -> bool:
            return set(names) <= {name_of(each) for each in (await self.client.list(DEPLOYMENTS, "default")).items}

        await until(deployed, f"there are the Deployments {', '.join(names)}", within=120)

    async def has_pool(self, service: str) -> None:
        """Of a kind that nobody but our chart has brought."""

        async def made() -> bool:
            return f"{service}-inference-pool" in {
                name_of(each) for each in (await self.client.list(INFERENCE_POOLS, "default")).items
            }

        await until(made, f"{service} has an InferencePool", within=120)

    async def authority(self) -> str:
        """By which the API server trusts who converts LLMInferenceServices."""
        crd = await self.client.get(CUSTOM_RESOURCE_DEFINITIONS, "llminferenceservices.serving.kserve.io")
        return str(crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"])

    async def converts(self, name: str) -> None:
        path = f"/apis/serving.kserve.io/v1alpha1/namespaces/default/llminferenceservices/{name}"
        assert (await self.client.request("GET", path))["apiVersion"] == "serving.kserve.io/v1alpha1"

    async def give(self, authority: Pair) -> None:
        """Certificates of one's own in the Secrets that the chart mounts."""
        for server in ("kserve-webhook-server", "llmisvc-webhook-server"):
            pair = issue_serving(authority, [f"{server}-service.kserve.svc"], SystemClock().now())
            data = {"tls.crt": pair.certificate, "tls.key": pair.key}
            encoded = {name: base64.b64encode(value).decode() for name, value in data.items()}
            await self.client.patch(SECRETS, f"{server}-cert", {"data": encoded}, "kserve", kind=PatchKind.MERGE)


async def _install(cluster: Cluster, client: Client, folder: Path) -> None:
    platform = Platform(cluster, client, folder)
    run = platform.helm
    run("install", "isvc-crds", CHARTS / "isvc-crds", "--create-namespace", "--wait")
    standard = ["config.sections.deploy.defaultDeploymentMode=Standard", "networkPolicy.enabled=true"]
    run("install", "isvc", CHARTS / "isvc", *settings(standard))  # before any webhook answers
    assert await client.list(LLM_INFERENCE_SERVICE_CONFIGS, "kserve")
    assert (await client.get(CLUSTER_SERVING_RUNTIMES, "kserve-sklearnserver"))["spec"]["containers"]
    manager, llmisvc = await platform.deployments()
    async with platform.running(manager), platform.running(llmisvc):
        await platform.create(INFERENCE_SERVICES, SERVICE, "iris")
        await platform.refuses()
        await platform.deploys("iris-predictor")
    trusted = await platform.authority()
    run("upgrade", "isvc-crds", CHARTS / "isvc-crds", *settings(["inferenceExtension=true"]))
    assert trusted == await platform.authority(), "an upgrade keeps the conversion"

    await _with_given_certificates(platform)

    run("upgrade", "isvc", CHARTS / "isvc", "--reuse-values", "--set", "manager.replicas=2")
    assert [each["spec"]["replicas"] for each in await platform.deployments()] == [2]
    run("rollback", "isvc", 1)
    assert [each["spec"]["replicas"] for each in await platform.deployments()] == [1, 1]
    assert (await client.get(CONFIG_MAPS, "inferenceservice-config", "kserve"))["data"]["deploy"]
    run("uninstall", "isvc")
    assert not await platform.deployments()
    for webhooks in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
        assert not (await client.list(webhooks)).items, "nothing asks managers that are gone"
    assert await client.get(INFERENCE_SERVICES, "iris", "default"), "services outlive the managers"
    assert await client.get(NAMESPACES, "kserve")
    assert await client.get(SECRETS, "kserve-webhook-server-cert", "kserve")


async def _with_given_certificates(platform: Platform) -> None:
    """An upgrade from own certificates to given ones, and to one process; then the certificates are renewed."""
    authority = issue_authority("ours", SystemClock().now())
    await platform.give(authority)
    bundle = base64.b64encode(authority.certificate).decode()
    given = settings(["certificates.source=secret", f"certificates.caBundle={bundle}"])
    platform.helm("upgrade", "isvc-crds", CHARTS / "isvc-crds", *given)
    platform.helm("upgrade", "isvc", CHARTS / "isvc", "--reuse-values", "--set", "llmisvc.inManager=true", *given)
    [both] = await platform.deployments()
    async with platform.running(both, "with given certificates") as pod:
        await platform.create(INFERENCE_SERVICES, SERVICE, "rose")
        await platform.create(LLM_INFERENCE_SERVICES, LLM_SERVICE, "tulip")
        await platform.deploys("rose-predictor", "tulip-kserve")
        await platform.has_pool("tulip")
        await platform.converts("tulip")
        before = [pod.certificate(name) for name in ("webhook-server", "llmisvc-webhook")]
        await platform.give(authority)
        await pod.mount()

        def renewed() -> bool:
            return all(pod.certificate(n) not in before for n in ("webhook-server", "llmisvc-webhook"))

        await until(renewed, "the webhooks are served with the renewed certificates", every=0.2)
        await platform.refuses()
        await platform.converts("tulip")

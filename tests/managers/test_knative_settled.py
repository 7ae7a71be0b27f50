"""A settled Knative service stays settled: whatever Knative adds or repeats, only news is written."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from functools import partial

import pytest
from tests.cluster.lifecycles.stage import INGRESS, Platform, Running, running, service, set_up
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.conditions import is_true
from isvc.kube.errors import ApiError
from isvc.kube.objects import Key, Object, deep_copy, resource_version_of
from isvc.kube.resource import MUTATING_WEBHOOK_CONFIGURATIONS, SERVICES
from isvc.serving.thirdparty import KNATIVE_SERVICES, VIRTUAL_SERVICES
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.rotation import Certificates, Targets
from isvc.toolkit.webhook import Admission, AdmissionRequest, AdmissionResponse, WebhookServer, allow_change

PREDICTOR = "life-predictor"
HOSTS = ("localhost", "127.0.0.1")


def as_knative_defaults(request: AdmissionRequest) -> AdmissionResponse:
    """What Knative's own webhook fills in."""
    after = deep_copy(request.object)
    spec = after["spec"]["template"]["spec"]
    for field, value in {"containerConcurrency": 0, "timeoutSeconds": 300, "enableServiceLinks": False}.items():
        spec.setdefault(field, value)
    for container in spec["containers"]:
        container.setdefault("readinessProbe", {"successThreshold": 1, "tcpSocket": {"port": 0}})
        container.setdefault("resources", {})
    after["metadata"].setdefault("annotations", {})["serving.knative.dev/creator"] = "isvc"
    return allow_change(request.object, after)


@pytest.fixture
async def knative_webhook(client, namespace, tmp_path) -> AsyncIterator[None]:
    certificates = Certificates(client, namespace=namespace, secret="cert", hosts=HOSTS, cert_dir=tmp_path)
    await certificates.ensure()
    server = WebhookServer(0, tmp_path, {"/default": Admission(as_knative_defaults)}, host="127.0.0.1")
    await server.start()
    server.open()
    rule = {"apiGroups": [KNATIVE_SERVICES.group], "apiVersions": ["v1"], "resources": [KNATIVE_SERVICES.plural]}
    webhook = {
        "name": "defaults.knative.example",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"url": f"https://127.0.0.1:{server.port}/default"},
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "rules": [{**rule, "operations": ["CREATE", "UPDATE"]}],
    }
    name = f"knative-{namespace}"
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, {**kind, "metadata": {"name": name}, "webhooks": [webhook]})
    targets = Targets(mutating=[name])
    await Certificates(
        client, namespace=namespace, secret="cert", hosts=HOSTS, cert_dir=tmp_path, targets=targets
    ).ensure()
    yield
    await client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, name)
    await server.stop()


class Watched:
    """A service under a running controller, and what happens to its Knative Service."""

    def __init__(self, client: Client, namespace: str, controller: Running) -> None:
        self.client, self.namespace, self.controller = client, namespace, controller
        self.platform = Platform(client)

    async def get(self) -> Object:
        return await self.client.get(INFERENCE_SERVICES, "life", self.namespace)

    async def knative(self) -> Object:
        return await self.client.get(KNATIVE_SERVICES, PREDICTOR, self.namespace)

    async def becomes_ready(self) -> None:
        async def ready() -> bool:
            await self.platform.make_ready(self.namespace)
            conditions = ((await self.get()).get("status") or {}).get("conditions") or []
            routed = (await self.client.list(VIRTUAL_SERVICES, self.namespace)).items
            return is_true(conditions, "Ready") and bool(routed) and not self.controller.controller.queue.busy

        await until(ready, "the service is ready", every=0.1)
        await self.controller.recorder.flush()

    async def reports(self, **status) -> None:
        """Knative writes a status, and the controller looks at it."""
        before = self.looks()
        await self.client.patch(KNATIVE_SERVICES, PREDICTOR, {"status": status}, self.namespace, subresource="status")
        await until(lambda: self.looks() > before, "the controller looked")

    def looks(self) -> int:
        return self.controller.reconciled.get(Key(self.namespace, "life"), 0)


@pytest.fixture
async def watched(cluster, client, namespace, knative_webhook) -> AsyncIterator[Watched]:
    await set_up(client, namespace, "Knative")
    await until(lambda: _is_defaulted(client, namespace), "the API server asks the webhook")
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, namespace) as controller:
        await client.create(INFERENCE_SERVICES, service(namespace))
        subject = Watched(client, namespace, controller)
        await subject.becomes_ready()
        yield subject


async def test_defaults_of_knatives_webhook_cause_no_write(watched):
    assert (await watched.knative())["spec"]["template"]["spec"]["timeoutSeconds"] == 300
    before = watched.controller.writes()
    for generation in range(100, 105):
        await watched.reports(observedGeneration=generation)
    assert watched.controller.writes() == before


async def test_a_restart_looks_and_changes_nothing(watched, cluster):
    """Not even with fields that a webhook added, which a new controller does not know from its own."""
    watched.controller.manager.stop()
    before = await versions(watched)
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as own, running(own, watched.namespace) as again:
        await until(lambda: Key(watched.namespace, "life") in again.reconciled, "the service is looked at")
    assert await versions(watched) == before


async def test_a_flapping_service_costs_one_status_write_a_flap(watched):
    """And never a write to the Knative Service, which would make Knative report once more."""
    version = (await watched.knative())["metadata"]["generation"]
    before = watched.controller.writes()
    flaps = [("Unknown", "Deploying"), ("True", "")] * 3
    for status, reason in flaps:
        conditions = [{"type": kind, "status": status, "reason": reason} for kind in ("Ready", "RoutesReady")]
        await watched.reports(conditions=conditions)
        await until(partial(_is_reported, watched, status), "the flap in the status")
    written = watched.controller.writes() - before
    events = len(flaps)  # becoming ready again is an event each time
    assert len(flaps) <= written <= len(flaps) + events
    assert (await watched.knative())["metadata"]["generation"] == version


async def test_the_alias_and_the_gateway_are_as_configured(watched):
    alias = await watched.client.get(SERVICES, "life", watched.namespace)
    assert alias["spec"]["externalName"] == INGRESS["localGatewayService"]


async def versions(watched: Watched) -> list[str]:
    """Of the service and all its children: a write would change one."""
    kinds = (INFERENCE_SERVICES, KNATIVE_SERVICES, VIRTUAL_SERVICES, SERVICES)
    lists = [await watched.client.list(kind, watched.namespace) for kind in kinds]
    return [resource_version_of(obj) for found in lists for obj in found.items]


async def _is_defaulted(client: Client, namespace: str) -> bool:
    spec = {"template": {"spec": {"containers": [{"image": "probe"}]}}}
    probe = {"apiVersion": KNATIVE_SERVICES.api_version, "kind": "Service", "metadata": {"name": "probe"}, "spec": spec}
    with contextlib.suppress(ApiError):  # it may have been seen without its bundle
        made = await client.create(KNATIVE_SERVICES, probe, namespace, dry_run=True)
        return "timeoutSeconds" in made["spec"]["template"]["spec"]
    return False


async def _is_reported(watched: Watched, status: str) -> bool:
    return is_true((await watched.get())["status"]["conditions"], "Ready") == (status == "True")

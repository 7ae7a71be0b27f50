"""The stage for lifecycles: kinds, configuration and runtimes installed, and the controllers run in this process.

No webhooks take part, so services are written as the defaulter would leave them. `Platform` plays Kubernetes and
Knative: it reports what they would report once everything is healthy.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import AsyncIterator, Callable

from tests import definitions
from tests.cluster.programs import running_manager

from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    CLUSTER_STORAGE_CONTAINERS,
    INFERENCE_SERVICES,
    SERVING_RUNTIMES,
    TRAINED_MODELS,
)
from isvc.controllers.inferenceservice.watches import controller
from isvc.kube.errors import AlreadyExists, Conflict, NotFound
from isvc.kube.objects import Key, Object, name_of, namespace_of
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, Resource
from isvc.serving.environment import Environment
from isvc.serving.thirdparty import KNATIVE_SERVICES, VIRTUAL_SERVICES
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller
from isvc.toolkit.manager import Manager
from isvc.toolkit.recorder import Recorder

OURS = (INFERENCE_SERVICES, SERVING_RUNTIMES, CLUSTER_SERVING_RUNTIMES, CLUSTER_STORAGE_CONTAINERS, TRAINED_MODELS)
RUNTIME = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "ClusterServingRuntime",
    "metadata": {"name": "lifecycle-runtime"},
    "spec": {
        "supportedModelFormats": [{"name": "sklearn", "version": "1", "autoSelect": True}],
        "protocolVersions": ["v1", "v2"],
        "containers": [{"name": "kserve-container", "image": "server:1", "args": ["--model_name={{.Name}}"]}],
    },
}
STORAGE = {
    "apiVersion": "serving.kserve.io/v1alpha1",
    "kind": "ClusterStorageContainer",
    "metadata": {"name": "lifecycle-storage"},
    "spec": {
        "container": {"name": "storage-initializer", "image": "initializer:1"},
        "supportedUriFormats": [{"prefix": "gs://"}],
    },
}


def service(namespace: str) -> Object:
    """Returns a service of the runtime above."""
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://models/first", "name": "", "resources": {}}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "life", "namespace": namespace},
        "spec": {"predictor": {"model": model, "minReplicas": 1, "maxReplicas": 2}},
    }


def foreign_crd(resource: Resource) -> Object:
    """Another project's kind, taken as it comes."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},  # asked for below k8s.io
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()},
            "versions": [{**version, "subresources": {"status": {}}}],
        },
    }


def our_crds() -> list[Object]:
    return [definitions.ours(resource) for resource in OURS]


async def set_up(client: Client, system_namespace: str, mode: str) -> None:
    await definitions.install(client, *our_crds(), foreign_crd(KNATIVE_SERVICES), foreign_crd(VIRTUAL_SERVICES))
    for resource, obj in ((CLUSTER_SERVING_RUNTIMES, RUNTIME), (CLUSTER_STORAGE_CONTAINERS, STORAGE)):
        with contextlib.suppress(AlreadyExists):
            await client.create(resource, obj)
    data = {"deploy": {"defaultDeploymentMode": mode}, "ingress": {"enableGatewayApi": False, **INGRESS}}
    metadata = {"name": "inferenceservice-config", "namespace": system_namespace}
    sections = {name: json.dumps(section) for name, section in data.items()}
    await client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": sections})


INGRESS = {
    "ingressDomain": "example.com",
    "ingressGateway": "knative-serving/public",
    "localGateway": "knative-serving/local",
    "localGatewayService": "local-gateway.istio-system.svc.cluster.local",
    "kserveIngressGateway": "kserve/gateway",
}


class Running:
    """A controller at work, that of InferenceServices unless another one is given."""

    def __init__(self, client: Client, system_namespace: str, build: Callable[..., Controller] = controller) -> None:
        self.cache = Cache(client)
        self.recorder = Recorder(client, "test")
        context = Context(client, self.cache, self.recorder, SystemClock())
        self.controller = build(context, Environment(system_namespace=system_namespace))
        self.manager = Manager(client, self.cache, controllers=[self.controller], services=[self.recorder])
        self.reconciled: dict[Key, int] = {}
        reconcile = self.controller.reconcile

        async def counted(key: Key):
            result = await reconcile(key)
            self.reconciled[key] = self.reconciled.get(key, 0) + 1
            return result

        self.controller.reconcile = counted

    def has_seen_to(self, keys: set[Key]) -> bool:
        """Each of these at least once, and there is nothing left to do."""
        queue = self.controller.queue
        return keys <= self.reconciled.keys() and not len(queue) and not queue.busy

    def writes(self) -> int:
        samples = next(iter(self.manager.metrics.requests.collect())).samples
        written = (s for s in samples if s.name.endswith("_total") and s.labels["method"] != "GET")
        return int(sum(sample.value for sample in written))


@contextlib.asynccontextmanager
async def running(
    client: Client, system_namespace: str, build: Callable[..., Controller] = controller
) -> AsyncIterator[Running]:
    state = Running(client, system_namespace, build)
    async with running_manager(state.manager):
        yield state


class Platform:
    """Reports health for what it finds, as kube-controller-manager and Knative would."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._revisions: dict[str, list[str]] = {}

    async def make_ready(self, namespace: str) -> None:
        for deployment in (await self._client.list(DEPLOYMENTS, namespace)).items:
            await self._report(DEPLOYMENTS, deployment, self._deployment(deployment))
        for service in (await self._client.list(KNATIVE_SERVICES, namespace)).items:
            await self._report(KNATIVE_SERVICES, service, self.knative(service))

    async def _report(self, resource: Resource, obj: Object, status: Object) -> None:
        if (obj.get("status") or {}) != status:
            with contextlib.suppress(NotFound, Conflict):
                await self._client.patch(
                    resource, name_of(obj), {"status": status}, namespace_of(obj), subresource="status"
                )

    def _deployment(self, deployment: Object) -> Object:
        replicas = deployment["spec"].get("replicas", 1)
        reasons = {"Available": "MinimumReplicasAvailable", "Progressing": "NewReplicaSetAvailable"}
        return {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": replicas,
            "readyReplicas": replicas,
            "updatedReplicas": replicas,
            "availableReplicas": replicas,
            "conditions": [_true(kind, reason) for kind, reason in reasons.items()],
        }

    def knative(self, service: Object) -> Object:
        name, namespace = name_of(service), namespace_of(service)
        digest = hashlib.sha256(json.dumps(service["spec"]["template"], sort_keys=True).encode()).hexdigest()
        history = self._revisions.setdefault(f"{namespace}/{name}", [])
        if history[-1:] != [digest]:
            history.append(digest)
        revision = f"{name}-{len(history):05d}"
        traffic = [
            {**target, "revisionName": revision} if target.get("latestRevision") else target
            for target in service["spec"].get("traffic") or [{"latestRevision": True, "percent": 100}]
        ]
        return {
            "observedGeneration": service["metadata"]["generation"],
            "url": f"http://{name}.{namespace}.example.com",
            "address": {"url": f"http://{name}.{namespace}.svc.cluster.local"},
            "latestCreatedRevisionName": revision,
            "latestReadyRevisionName": revision,
            "traffic": traffic,
            "conditions": [_true(kind) for kind in ("ConfigurationsReady", "Ready", "RoutesReady")],
        }


def _true(kind: str, reason: str = "") -> Object:
    condition = {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**condition, "reason": reason} if reason else condition

"""Everything around the controllers: what a kubelet, a ReplicaSet controller or a gateway would report."""

from __future__ import annotations

import asyncio
import contextlib
import json
from functools import partial

import pytest
from tests import definitions
from tests.cluster.lifecycles.stage import foreign_crd
from tests.cluster.programs import SYSTEM
from tests.insight.failures.manifests import (
    CONFIG,
    GATEWAY,
    GOING,
    HERE,
    KINDS,
    container,
    pod_of,
    runtime,
    somebodys_deployment,
    trained_model,
    waiting,
)
from tests.insight.failures.webhooks import webhook
from tests.ports import free_port
from tests.waiting import until

from isvc.api.annotations import STOP
from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICES,
    TRAINED_MODELS,
)
from isvc.kube.errors import ApiError, NotFound
from isvc.kube.objects import Object, dig, name_of
from isvc.kube.owners import controller_ref
from isvc.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    EVENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    Resource,
)
from isvc.serving.thirdparty import GATEWAYS, HTTP_ROUTES
from isvc.toolkit.client import Client


class World:
    """Everything around the controllers."""

    def __init__(self, client: Client) -> None:
        self.client = client

    # -- before ---------------------------------------------------------------------------------------------------

    async def set_up(self) -> None:
        await definitions.install(
            self.client, *map(definitions.ours, KINDS), *map(foreign_crd, (GATEWAYS, HTTP_ROUTES))
        )
        for name in (SYSTEM, HERE, GOING):
            with contextlib.suppress(ApiError):
                await self.client.create(
                    NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                )
        sections = {name: json.dumps(section) for name, section in CONFIG.items()}
        metadata = {"name": "inferenceservice-config", "namespace": SYSTEM}
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": sections}
        await self.client.create(CONFIG_MAPS, config)
        for name, model_format in (("oak", "oak"), ("birch-a", "birch"), ("birch-b", "birch")):
            await self.client.create(CLUSTER_SERVING_RUNTIMES, runtime(name, model_format))
        await self.client.create(GATEWAYS, GATEWAY)
        await self._status(GATEWAYS, "front", {"addresses": [{"value": "10.0.0.1"}]}, SYSTEM)

    async def move_out(self, gateway: Object) -> None:
        await self._status(GATEWAYS, name_of(gateway), {"addresses": None}, SYSTEM)

    # -- what fails -----------------------------------------------------------------------------------------------

    async def seed(self, denying: Object) -> None:
        await self._webhooks(denying)
        await self.service("bad-uri", model={"storageUri": "ftp://models/iris"})
        await self.service("no-runtime", model={"modelFormat": {"name": "willow"}})
        await self.service("no-keda", annotations={"serving.kserve.io/autoscalerClass": "keda"})
        await self.service("no-knative", annotations={"serving.kserve.io/deploymentMode": "Knative"})
        await self.service("stopped", annotations={STOP: "true"})
        await self.service("other-webhook", labels={"policy": "strict"})
        await self.client.create(DEPLOYMENTS, somebodys_deployment("taken-predictor"))
        await self.service("taken")
        await self.service("terminating", namespace=GOING)
        await self.client.create(TRAINED_MODELS, trained_model("orphan", "taken"))
        await self._llm()
        await asyncio.gather(self._containers(), self._replica_sets(), self._traffic())

    async def _webhooks(self, denying: Object) -> None:
        policy = webhook("policy.example.com", denying, DEPLOYMENTS, {"policy": "strict"})
        down = {"url": f"https://127.0.0.1:{free_port()}/mutate-pods"}
        mutator = webhook("inferenceservice.kserve-webhook-server.pod-mutator", down, PODS, {"mutate": "yes"})
        for resource, hook in (
            (VALIDATING_WEBHOOK_CONFIGURATIONS, policy),
            (MUTATING_WEBHOOK_CONFIGURATIONS, mutator),
        ):
            await self.client.create(
                resource,
                {
                    "apiVersion": resource.api_version,
                    "kind": resource.kind,
                    "metadata": {"name": hook["name"]},
                    "webhooks": [hook],
                },
            )

    async def _llm(self) -> None:
        broken = {"model": {"uri": "pvc://claim/{{ .Spec.Nothing.At.All }}"}}
        kind = LLM_INFERENCE_SERVICE_CONFIGS
        metadata = {"name": "broken", "namespace": HERE}
        await self.client.create(
            kind, {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": broken}
        )
        for name, base in (("template", "broken"), ("base-ref", "nowhere")):
            service = {
                "apiVersion": LLM_INFERENCE_SERVICES.api_version,
                "kind": LLM_INFERENCE_SERVICES.kind,
                "metadata": {"name": name, "namespace": HERE},
                "spec": {"model": {"uri": "pvc://claim/model", "name": "m"}, "baseRefs": [{"name": base}]},
            }
            await self.client.create(LLM_INFERENCE_SERVICES, service)

    async def _containers(self) -> None:
        loading = {
            "reason": "Error",
            "exitCode": 1,
            "message": "Traceback\nModuleNotFoundError: No module named 'sklearn.old'",
        }
        denied = {"reason": "Error", "exitCode": 1, "message": "s3://models/iris: AccessDenied"}
        states: dict[str, Object] = {
            "missing-secret": waiting("CreateContainerConfigError", 'secret "token" not found'),
            "does-not-load": {"state": {"terminated": loading}},
            "crash-loop": {
                **waiting("CrashLoopBackOff", "back-off 5m0s"),
                "lastState": {"terminated": {"reason": "Error", "exitCode": 139}},
                "restartCount": 7,
            },
            "memory": {
                **waiting("CrashLoopBackOff", "back-off 10s"),
                "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
            },
            "probe": {"state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}, "started": True},
            "image": {**waiting("ImagePullBackOff", "not found"), "image": "example.com/none:1"},
        }
        for name, state in states.items():
            await self.service(name)
            pod = await self.pod(name, {"containerStatuses": [container("kserve-container", **state)]})
            if name == "probe":
                await self.event(pod, "Unhealthy", "Readiness probe failed: connection refused")
        await self.service("wrong-credentials")
        failed = container("storage-initializer", state={"terminated": denied})
        await self.pod("wrong-credentials", {"initContainerStatuses": [failed]})

    async def _replica_sets(self) -> None:
        await self.service("quota")
        message = 'pods "quota-predictor-1-a" is forbidden: exceeded quota: tight, requested: cpu=1, used: cpu=8'
        await self.event(await self.replica_set("quota"), "FailedCreate", f"Error creating: {message}")
        await self.service("our-webhook-down")
        replica_set = await self.replica_set("our-webhook-down")
        pod = pod_of(replica_set)
        pod["metadata"]["labels"]["mutate"] = "yes"
        with pytest.raises(ApiError) as refused:
            await self.client.create(PODS, pod)
        await self.event(replica_set, "FailedCreate", f"Error creating: {refused.value.message}")

    async def _traffic(self) -> None:
        for name in ("two-runtimes", "no-metrics", "route-refused", "routed"):
            await self.service(name, model={"modelFormat": {"name": "birch"}} if name == "two-runtimes" else {})
            await self.available(name)
        for name in ("two-runtimes", "no-metrics"):
            await self.routes(name, "Accepted", "True")
        await self.routes("route-refused", "Accepted", "False", count=1)
        await until(partial(self.route, "routed-predictor"), "a route")
        failing = [
            {
                "type": "ScalingActive",
                "status": "False",
                "reason": "FailedGetResourceMetric",
                "message": "no metrics known",
            }
        ]
        await until(partial(self._status, HORIZONTAL_POD_AUTOSCALERS, "no-metrics-predictor", {"conditions": failing}))
        for name in ("two-runtimes", "no-metrics"):
            await until(partial(self.is_ready, name), f"{name} is ready")

    # -- the platform ---------------------------------------------------------------------------------------------

    async def service(
        self,
        name: str,
        model: Object | None = None,
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        namespace: str = HERE,
    ) -> None:
        model = {"modelFormat": {"name": "oak"}, "storageUri": "s3://models/iris", "runtime": None, **(model or {})}
        service = {
            "apiVersion": INFERENCE_SERVICES.api_version,
            "kind": INFERENCE_SERVICES.kind,
            "metadata": {
                "name": name,
                "namespace": namespace,
                "annotations": annotations or {},
                "labels": labels or {},
            },
            "spec": {"predictor": {"model": {key: value for key, value in model.items() if value is not None}}},
        }
        await self.client.create(INFERENCE_SERVICES, service)

    async def deployment(self, name: str) -> Object:
        async def found() -> Object | None:
            with contextlib.suppress(NotFound):
                return await self.client.get(DEPLOYMENTS, f"{name}-predictor", HERE)
            return None

        return dict(await until(found, f"the Deployment of {name}"))

    async def replica_set(self, name: str) -> Object:
        deployment = await self.deployment(name)
        selector, template = deployment["spec"]["selector"], deployment["spec"]["template"]
        return await self.client.create(
            REPLICA_SETS,
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": f"{name}-predictor-1",
                    "namespace": HERE,
                    "labels": template["metadata"]["labels"],
                    "ownerReferences": [controller_ref(deployment)],
                },
                "spec": {"replicas": 1, "selector": selector, "template": template},
            },
        )

    async def pod(self, name: str, status: Object) -> Object:
        pod = await self.client.create(PODS, pod_of(await self.replica_set(name)))
        await self._status(PODS, name_of(pod), {"phase": "Pending", **status})
        return pod

    async def event(self, obj: Object, reason: str, message: str) -> None:
        involved = {"kind": obj["kind"], "name": name_of(obj), "namespace": HERE, "uid": obj["metadata"]["uid"]}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{name_of(obj)}.{reason.lower()}", "namespace": HERE},
            "involvedObject": involved,
            "type": "Warning",
            "reason": reason,
            "message": message,
        }
        await self.client.create(EVENTS, event)

    async def available(self, name: str) -> None:
        deployment = await self.deployment(name)
        conditions = [
            {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "available"},
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "complete"},
        ]
        counts = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1}
        await self._status(DEPLOYMENTS, name_of(deployment), {**counts, "conditions": conditions})

    async def route(self, name: str) -> Object | None:
        with contextlib.suppress(NotFound):
            return await self.client.get(HTTP_ROUTES, name, HERE)
        return None

    async def routes(self, name: str, kind: str, status: str, count: int = 2) -> None:
        """The routes of a service, with what a gateway says about them."""
        for each in (f"{name}-predictor", name)[:count]:
            route = await until(partial(self.route, each), f"HTTPRoute {each}")
            condition = {
                "type": kind,
                "status": status,
                "reason": "NoMatchingListenerHostname",
                "message": "no listener",
            }
            parent = {"parentRef": route["spec"]["parentRefs"][0], "controllerName": "x", "conditions": [condition]}
            await self._status(HTTP_ROUTES, each, {"parents": [parent]})

    async def is_ready(self, name: str) -> bool:
        service = await self.client.get(INFERENCE_SERVICES, name, HERE)
        return any(c["type"] == "Ready" and c["status"] == "True" for c in dig(service, "status", "conditions") or ())

    async def _status(self, resource: Resource, name: str, status: Object, namespace: str = HERE) -> bool:
        try:
            await self.client.patch(resource, name, {"status": status}, namespace, subresource="status")
        except NotFound:
            return False
        return True

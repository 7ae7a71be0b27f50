"""The objects of failing services: configuration, runtimes, pods and what a kubelet says about them."""

from __future__ import annotations

from typing import Any

from tests.cluster.programs import SYSTEM

from isvc.api import resources as ours
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, TRAINED_MODELS
from isvc.kube.objects import Object, name_of
from isvc.kube.owners import controller_ref
from isvc.serving.thirdparty import GATEWAYS

HERE, GOING = "failures", "going"
KINDS = (
    ours.INFERENCE_SERVICES,
    ours.SERVING_RUNTIMES,
    ours.CLUSTER_SERVING_RUNTIMES,
    ours.CLUSTER_STORAGE_CONTAINERS,
    ours.INFERENCE_GRAPHS,
    ours.TRAINED_MODELS,
    ours.LLM_INFERENCE_SERVICES,
    ours.LLM_INFERENCE_SERVICE_CONFIGS,
)
GATEWAY = {
    "apiVersion": GATEWAYS.api_version,
    "kind": "Gateway",
    "metadata": {"name": "front", "namespace": SYSTEM},
    "spec": {"gatewayClassName": "some", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
}
CONFIG: dict[str, Object] = {
    "deploy": {"defaultDeploymentMode": "Standard"},
    "ingress": {
        "enableGatewayApi": True,
        "kserveIngressGateway": f"{SYSTEM}/front",
        "ingressGateway": "knative-serving/public",
        "localGateway": "knative-serving/local",
        "localGatewayService": "local.istio-system.svc.cluster.local",
        "ingressDomain": "example.com",
    },
    "storageInitializer": {"image": "initializer:1", "cpuRequest": "1", "cpuLimit": "1", "memoryRequest": "1Gi"},
}


def runtime(name: str, model_format: str) -> Object:
    limits = {"cpu": "1", "memory": "1Gi"}
    server = {"name": "kserve-container", "image": "server:1", "resources": {"limits": limits, "requests": limits}}
    return {
        "apiVersion": CLUSTER_SERVING_RUNTIMES.api_version,
        "kind": CLUSTER_SERVING_RUNTIMES.kind,
        "metadata": {"name": name},
        "spec": {
            "supportedModelFormats": [{"name": model_format, "version": "1", "autoSelect": True}],
            "protocolVersions": ["v1"],
            "containers": [server],
        },
    }


def trained_model(name: str, service: str) -> Object:
    model = {"framework": "oak", "storageUri": "s3://models/iris", "memory": "1Gi"}
    return {
        "apiVersion": TRAINED_MODELS.api_version,
        "kind": TRAINED_MODELS.kind,
        "metadata": {"name": name, "namespace": HERE},
        "spec": {"inferenceService": service, "model": model},
    }


def somebodys_deployment(name: str) -> Object:
    labels = {"app": "somebody"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": HERE},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def pod_of(replica_set: Object) -> Object:
    template = replica_set["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name_of(replica_set)}-a",
            "namespace": HERE,
            "labels": dict(template["metadata"]["labels"]),
            "ownerReferences": [controller_ref(replica_set)],
        },
        "spec": {"containers": template["spec"]["containers"]},
    }


def container(name: str, **more: Any) -> Object:
    return {"name": name, "image": "server:1", "imageID": "", "ready": False, "restartCount": 0, **more}


def waiting(reason: str, message: str) -> Object:
    return {"state": {"waiting": {"reason": reason, "message": message}}}

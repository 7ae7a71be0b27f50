"""The inferenceservice-config ConfigMap of a laptop: Deployments behind the Gateway API, on this machine's own domain.

`status.url` is a path below `localhost`, a name that every client resolves; not all of them resolve `*.localhost`.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from isvc.kube.objects import Object
from isvc.local.install.gateway import GATEWAY_NAME
from isvc.local.install.knative import LOCAL_GATEWAY_HOST

_SMALL = {"memoryRequest": "100Mi", "memoryLimit": "1Gi", "cpuRequest": "100m", "cpuLimit": "1"}

_SECTIONS: dict[str, dict[str, Any]] = {
    "deploy": {"defaultDeploymentMode": "Standard"},
    "storageInitializer": {
        "image": "kserve/storage-initializer:latest",
        **_SMALL,
        "caBundleConfigMapName": "",
        "caBundleVolumeMountPath": "/etc/ssl/custom-certs",
        "ociModelMode": "native",
    },
    "credentials": {
        "storageSpecSecretName": "storage-config",
        "storageSecretNameAnnotation": "serving.kserve.io/storageSecretName",
        "gcs": {"gcsCredentialFileName": "gcloud-application-credentials.json"},
        "s3": {"s3AccessKeyIDName": "AWS_ACCESS_KEY_ID", "s3SecretAccessKeyName": "AWS_SECRET_ACCESS_KEY"},
    },
    "ingress": {
        "enableGatewayApi": True,
        "kserveIngressGateway": f"kserve/{GATEWAY_NAME}",
        "ingressGateway": "knative-serving/knative-ingress-gateway",
        "localGateway": "knative-serving/knative-local-gateway",
        "localGatewayService": LOCAL_GATEWAY_HOST,
        "knativeLocalGatewayService": LOCAL_GATEWAY_HOST,
        "ingressClassName": "isvc",
        "domainTemplate": "{{ .Name }}-{{ .Namespace }}.{{ .IngressDomain }}",
        "pathTemplate": "/serving/{{ .Namespace }}/{{ .Name }}",
        "pathBasedURL": True,
        "urlScheme": "http",
        "disableIstioVirtualHost": False,
        "disableIngressCreation": False,
    },
    "explainers": {"art": {"image": "kserve/art-explainer", "defaultImageVersion": "latest"}},
    "logger": {"image": "kserve/agent:latest", **_SMALL, "defaultUrl": "http://default-broker"},
    "batcher": {"image": "kserve/agent:latest", **_SMALL, "maxBatchSize": "32", "maxLatency": "5000"},
    "agent": {"image": "kserve/agent:latest", **_SMALL},
    "router": {"image": "kserve/router:latest", **_SMALL, "imagePullPolicy": "IfNotPresent"},
    "metricsAggregator": {"enableMetricAggregation": "false", "enablePrometheusScraping": "false"},
    "localModel": {"enabled": False},
    "security": {"autoMountServiceAccountToken": False},
    "inferenceService": {
        "resource": {"cpuLimit": "1", "memoryLimit": "2Gi", "cpuRequest": "1", "memoryRequest": "2Gi"}
    },
}


def config_map(namespace: str, gateway_port: int) -> Object:
    sections = {**_SECTIONS, "ingress": {**_SECTIONS["ingress"], "ingressDomain": domain(gateway_port)}}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "inferenceservice-config", "namespace": namespace},
        "data": {name: orjson.dumps(section).decode() for name, section in sections.items()},
    }


def domain(gateway_port: int) -> str:
    """With its port, so that status.url works in curl and in a browser as it stands."""
    return f"localhost:{gateway_port}"


def with_port(ingress: str, gateway_port: int) -> str | None:
    """The section with this start's port; None where that changes nothing, or the domain is the user's own."""
    try:
        section = orjson.loads(ingress)
    except orjson.JSONDecodeError:
        return None
    before = str(section.get("ingressDomain", ""))
    if not re.fullmatch(r"localhost(:\d+)?", before) or before == domain(gateway_port):
        return None
    return orjson.dumps({**section, "ingressDomain": domain(gateway_port)}).decode()

"""Webhook configurations by address: there is no Service to name without a cluster network."""

from __future__ import annotations

import base64

from isvc.kube.objects import Object

_GROUP = "serving.kserve.io"
_VALIDATED = {
    "inferenceservice": ("v1beta1", "inferenceservices"),
    "trainedmodel": ("v1alpha1", "trainedmodels"),
    "inferencegraph": ("v1alpha1", "inferencegraphs"),
    "clusterservingruntime": ("v1alpha1", "clusterservingruntimes"),
    "servingruntime": ("v1alpha1", "servingruntimes"),
}


def webhook_configurations(url: str, authority: bytes) -> list[Object]:
    def webhook(name: str, path: str, group: str, version: str, resource: str, *operations: str) -> Object:
        return {
            "name": name,
            "clientConfig": {"url": url + path, "caBundle": base64.b64encode(authority).decode()},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1", "v1beta1"],
            "rules": [
                {
                    "apiGroups": [group],
                    "apiVersions": [version],
                    "resources": [resource],
                    "operations": list(operations),
                }
            ],
        }

    defaulter = webhook(
        "inferenceservice.kserve-webhook-server.defaulter",
        "/mutate-serving-kserve-io-v1beta1-inferenceservice",
        _GROUP,
        "v1beta1",
        "inferenceservices",
        "CREATE",
        "UPDATE",
    )
    pods = webhook("inferenceservice.kserve-webhook-server.pod-mutator", "/mutate-pods", "", "v1", "pods", "CREATE")
    pods["reinvocationPolicy"] = "IfNeeded"
    pods["objectSelector"] = {"matchExpressions": [{"key": f"{_GROUP}/inferenceservice", "operator": "Exists"}]}
    validators = [
        _configuration(
            "ValidatingWebhookConfiguration",
            f"{kind}.{_GROUP}",
            webhook(
                f"{kind}.kserve-webhook-server.validator",
                f"/validate-serving-kserve-io-{version}-{kind}",
                _GROUP,
                version,
                resource,
                "CREATE",
                "UPDATE",
            ),
        )
        for kind, (version, resource) in _VALIDATED.items()
    ]
    return [_configuration("MutatingWebhookConfiguration", f"inferenceservice.{_GROUP}", defaulter, pods), *validators]


def _configuration(kind: str, name: str, *webhooks: Object) -> Object:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }

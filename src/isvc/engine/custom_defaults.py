"""What other projects' CustomResourceDefinitions and webhooks fill in, by kind and path.

Their API is not ours to ask at run time, so the values that matter to our children are written down. A value that is
missing here, or that another release fills in differently, costs one dry run after a restart (`engine.apply`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from isvc.kube.resource import Resource

_ANY_PATH: Final = {"type": "PathPrefix", "value": "/"}
_CONTAINERS: Final = {
    "containers[].ports[].protocol": "TCP",
    "initContainers[].ports[].protocol": "TCP",
}
_KNATIVE_PROBE: Final = {"successThreshold": 1, "tcpSocket": {"port": 0}}
_HTTP_FILTERS: Final = {
    "requestMirror.backendRef.kind": "Service",
    "requestMirror.fraction.denominator": 100,
    "requestRedirect.statusCode": 302,
}


def _under(prefix: str, defaults: dict[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{path}": value for path, value in defaults.items()}


#: By group and kind. `[]` stands for every item of a list. Values that are empty or zero need no entry.
_DEFAULTS: Final[dict[tuple[str, str], dict[str, Any]]] = {
    ("gateway.networking.k8s.io", "HTTPRoute"): {
        "spec.parentRefs[].group": "gateway.networking.k8s.io",
        "spec.parentRefs[].kind": "Gateway",
        "spec.rules[].matches": [{"path": _ANY_PATH}],
        "spec.rules[].matches[].path": _ANY_PATH,
        "spec.rules[].matches[].path.type": "PathPrefix",
        "spec.rules[].matches[].path.value": "/",
        "spec.rules[].matches[].headers[].type": "Exact",
        "spec.rules[].matches[].queryParams[].type": "Exact",
        "spec.rules[].backendRefs[].kind": "Service",
        "spec.rules[].backendRefs[].weight": 1,
        **_under("spec.rules[].filters[]", _HTTP_FILTERS),
        **_under("spec.rules[].backendRefs[].filters[]", _HTTP_FILTERS),
    },
    ("inference.networking.k8s.io", "InferencePool"): {
        "spec.appProtocol": "http",
        "spec.endpointPickerRef.kind": "Service",
        "spec.endpointPickerRef.failureMode": "FailClose",
    },
    ("inference.networking.x-k8s.io", "InferencePool"): {
        "spec.extensionRef.kind": "Service",
        "spec.extensionRef.failureMode": "FailClose",
    },
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): {
        "spec.replicas": 1,
        "spec.startupPolicy": "LeaderCreated",
        "spec.rolloutStrategy.type": "RollingUpdate",
        "spec.rolloutStrategy.rollingUpdateConfiguration.maxUnavailable": 1,
        "spec.networkConfig.subdomainPolicy": "Shared",
        "spec.leaderWorkerTemplate.size": 1,
        "spec.leaderWorkerTemplate.restartPolicy": "RecreateGroupOnPodRestart",
        "spec.leaderWorkerTemplate.subGroupPolicy.subGroupPolicyType": "LeaderWorker",
        **_under("spec.leaderWorkerTemplate.leaderTemplate.spec", _CONTAINERS),
        **_under("spec.leaderWorkerTemplate.workerTemplate.spec", _CONTAINERS),
    },
    ("opentelemetry.io", "OpenTelemetryCollector"): {
        "spec.configVersions": 3,
        "spec.ipFamilyPolicy": "SingleStack",
        "spec.managementState": "managed",
        "spec.replicas": 1,
        "spec.upgradeStrategy": "automatic",
        "spec.targetAllocator.allocationStrategy": "consistent-hashing",
        "spec.targetAllocator.filterStrategy": "relabel-config",
        "spec.targetAllocator.prometheusCR.scrapeInterval": "30s",
    },
    ("serving.knative.dev", "Service"): {
        "spec.traffic": [{"latestRevision": True, "percent": 100}],
        "spec.template.spec.timeoutSeconds": 300,
        "spec.template.spec.enableServiceLinks": False,
        "spec.template.spec.containers[].name": "user-container",
        "spec.template.spec.containers[].readinessProbe": _KNATIVE_PROBE,
        "spec.template.spec.containers[].readinessProbe.successThreshold": 1,
        **_under("spec.template.spec", _CONTAINERS),
    },
}


@dataclass(frozen=True, slots=True)
class Known:
    """What may be filled in at one place of an object, and below it."""

    value: Any = None
    below: dict[str, Known] = field(default_factory=dict)

    def at(self, name: str) -> Known:
        return self.below.get(name, NOTHING)

    def under(self, path: Sequence[str]) -> Known:
        found = self
        for name in path:
            found = found.at(name)
        return found


NOTHING: Final = Known()


@cache
def known_defaults(resource: Resource) -> Known:
    root: dict[str, Any] = {}
    for path, value in _DEFAULTS.get((resource.group, resource.kind), {}).items():
        place = root
        *parents, last = path.replace("[]", ".[]").split(".")
        for step in parents:
            place = place.setdefault(step, {}).setdefault("below", {})
        place.setdefault(last, {})["value"] = value
    return Known(below=_build_known(root))


def _build_known(tree: dict[str, Any]) -> dict[str, Known]:
    return {name: Known(node.get("value"), _build_known(node.get("below", {}))) for name, node in tree.items()}

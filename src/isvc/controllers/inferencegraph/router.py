"""The router of a graph: one container that gets the whole graph as JSON on its command line.

The JSON is compared as text by whoever watches the workload, so its fields stand in the order of our types, which is
that of the reference's: a different order would be a needless rollout of every graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from isvc.api.codec import encode
from isvc.api.inferencegraph import InferenceGraphSpec, StepPolicy, all_steps, step_key
from isvc.controllers.inferencegraph.resolve import Resolved
from isvc.kube import gojson
from isvc.kube.objects import Object
from isvc.kube.quantity import Quantity
from isvc.serving.config.sections import RouterConfig

PORT = 8080
# Fields of the Kubernetes types inside affinity and tolerations: an order that suits each of them.
_NESTED_FIELDS = (
    "nodeAffinity",
    "podAffinity",
    "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "weight",
    "preference",
    "podAffinityTerm",
    "labelSelector",
    "matchLabels",
    "matchExpressions",
    "matchFields",
    "namespaces",
    "topologyKey",
    "namespaceSelector",
    "matchLabelKeys",
    "mismatchLabelKeys",
    "key",
    "operator",
    "value",
    "values",
    "effect",
    "tolerationSeconds",
)
_POINTERS = {"weight", "tolerationSeconds"}  # zero counts


def pod_spec(resolved: Resolved, policies: Mapping[str, StepPolicy], config: RouterConfig, *, name: str = "") -> Object:
    """Returns the pod of the router; Knative names the container itself, a Deployment wants it named like the graph."""
    spec = resolved.spec
    container: Object = {
        **config.program,
        "args": ["--graph-json", graph_json(resolved, policies)],
        "resources": _resources(spec, config),
        "readinessProbe": {
            "httpGet": {"path": "/readyz", "port": PORT, "scheme": "HTTP"},
            "initialDelaySeconds": 5,
            "timeoutSeconds": 2,
            "periodSeconds": 5,
            "successThreshold": 1,
            "failureThreshold": 3,
        },
        "securityContext": {
            "privileged": False,
            "runAsNonRoot": True,
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    if name:
        container["name"] = name
    if config.image_pull_policy:
        container["imagePullPolicy"] = config.image_pull_policy
    if "propagate" in config.headers:
        container["env"] = [{"name": "PROPAGATE_HEADERS", "value": ",".join(config.headers["propagate"])}]
    pod: Object = {"containers": [container], "automountServiceAccountToken": False}
    if config.image_pull_secrets:
        pod["imagePullSecrets"] = [{"name": secret} for secret in config.image_pull_secrets]
    placement: Object = {
        "affinity": spec.affinity,
        "tolerations": spec.tolerations,
        "nodeSelector": spec.node_selector,
        "nodeName": spec.node_name,
        "serviceAccountName": spec.service_account_name,
    }
    return {**pod, **{field: value for field, value in placement.items() if value}}


def graph_json(resolved: Resolved, policies: Mapping[str, StepPolicy]) -> str:
    """Returns a graph's spec as the router reads it; of what is added to single steps KServe's takes no notice."""
    spec = resolved.spec
    written = encode(spec)
    for node, index, step in all_steps(spec):
        target = written["nodes"][node]["steps"][index]
        if step.service_name in resolved.llms:
            target["appendRequestPath"] = True
        target |= msgspec.to_builtins(policies.get(step_key(node, index, step), StepPolicy()))
    for field in ("affinity", "tolerations"):
        if field in written:
            written[field] = _order_nested(written[field])
    for field in ("nodes", "nodeSelector"):
        if field in written:
            written[field] = gojson.sorted_map(written[field])
    leading = {"nodes": written.get("nodes", {}), "resources": _canonical_resources(spec.resources)}
    return gojson.dumps({**leading, **written, **leading})


def _canonical_resources(resources: Object) -> Object:
    def quantities(of: Mapping[str, Any]) -> Object:
        return {name: str(Quantity.parse(amount)) for name, amount in gojson.sorted_map(of).items()}

    written: Object = {kind: quantities(resources[kind]) for kind in ("limits", "requests") if resources.get(kind)}
    if resources.get("claims"):
        written["claims"] = [_in_order(claim, ("name", "request")) for claim in resources["claims"]]
    return written


def _resources(spec: InferenceGraphSpec, config: RouterConfig) -> Object:
    """Returns what the graph asks for, limits and requests alone, or else the configuration's defaults, all of them."""
    if own := spec.resources:
        return {kind: amounts for kind, amounts in _canonical_resources(own).items() if kind != "claims"}
    return config.requirements


def _in_order(value: Object, fields: Iterable[str]) -> Object:
    return {field: value[field] for field in fields if field in value and (value[field] or field in _POINTERS)}


def _order_nested(value: Any) -> Any:
    if isinstance(value, list):
        return [_order_nested(item) for item in value]
    if not isinstance(value, dict):
        return value
    written = _in_order(value, _NESTED_FIELDS)
    return {
        key: gojson.sorted_map(inner) if key == "matchLabels" else _order_nested(inner)
        for key, inner in written.items()
    }

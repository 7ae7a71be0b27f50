"""The parts of an HTTPRoute: matches, backends, and the split of traffic between versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from isvc.controllers.inferenceservice.observe import Observed
from isvc.kube.objects import Object, labels_of, without
from isvc.serving.thirdparty import HTTP_ROUTES
from isvc.serving.workload.service import PORT, is_grpc

ANYTHING: Final = "^/.*$"
EXPLAIN: Final = r"^/v1/models/[\w-]+:explain$"
EXPLAIN_BELOW_PATH: Final = r"(/v1/models/[\w-]+:explain)$"
GRPC_METHODS: Final = r"^/inference\.GRPCInferenceService/.*$"


@dataclass(frozen=True, slots=True)
class Backend:
    """Where rules of a route send requests."""

    service: str
    observed: Observed
    timeout: str | None

    def rule(self, matches: list[Object], port: int = PORT) -> Object:
        reference = {"kind": "Service", "name": self.service, "namespace": self.observed.namespace, "port": port}
        rule: Object = {"matches": matches, "filters": [_headers(self.observed)], "backendRefs": [reference]}
        if self.timeout is not None:
            rule["timeouts"] = {"request": self.timeout}
        return rule


def protocol_rules(backend: Backend, service: Object) -> list[Object]:
    """One rule, or two where the Service has both an HTTP and a gRPC port; the more specific one comes first."""
    ports = service["spec"]["ports"]
    grpc = next((port["port"] for port in ports if is_grpc(port)), None)
    http = next((port["port"] for port in ports if not is_grpc(port)), None)
    if grpc is None or http is None:
        return [backend.rule([path_match(ANYTHING)])]
    content = {"type": "RegularExpression", "name": "content-type", "value": "^application/grpc.*"}
    matches = [{**path_match(GRPC_METHODS), "headers": [content]}]
    return [backend.rule(matches, grpc), backend.rule([path_match(ANYTHING)], http)]


def path_match(expression: str) -> Object:
    return {"path": {"type": "RegularExpression", "value": expression}}


def split(rule: Object, canaries: Sequence[tuple[str, int]]) -> Object:
    """The rule with traffic shared between the stable backend and canaries (name, percent)."""
    stable = rule["backendRefs"][0]
    weighted = [{**stable, "weight": 100 - sum(percent for _, percent in canaries)}]
    weighted += [{**stable, "name": name, "weight": percent} for name, percent in canaries]
    return {**rule, "backendRefs": weighted}


def http_route(observed: Observed, service: Object, name: str, hosts: list[str], rules: list[Object]) -> Object:
    namespace, _, gateway = observed.config.ingress.kserve_ingress_gateway.partition("/")
    disallowed = observed.config.inference_service.service_label_disallowed_list
    parent = {"group": HTTP_ROUTES.group, "kind": "Gateway", "namespace": namespace, "name": gateway}
    metadata: Object = {"name": name, "namespace": observed.namespace, "annotations": dict(observed.annotations)}
    if labels := without(labels_of(service), disallowed):
        metadata["labels"] = labels
    return {
        "apiVersion": HTTP_ROUTES.api_version,
        "kind": HTTP_ROUTES.kind,
        "metadata": metadata,
        "spec": {"hostnames": hosts, "rules": rules, "parentRefs": [parent]},
    }


def _headers(observed: Observed) -> Object:
    return {
        "type": "RequestHeaderModifier",
        "requestHeaderModifier": {
            "set": [
                {"name": "KServe-Isvc-Name", "value": observed.name},
                {"name": "KServe-Isvc-Namespace", "value": observed.namespace},
            ]
        },
    }

"""HTTPRoutes of the Gateway API: building one, and reading what gateways report about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from isvc.kube.objects import Key, Object, dig, namespace_of
from isvc.serving.config.sections import ServiceAddress
from isvc.serving.thirdparty import HTTP_ROUTES
from isvc.serving.workload.service import PORT, is_grpc

ANYTHING: Final = "^/.*$"
EXPLAIN: Final = r"^/v1/models/[\w-]+:explain$"
EXPLAIN_BELOW_PATH: Final = r"(/v1/models/[\w-]+:explain)$"
GRPC_METHODS: Final = r"^/inference\.GRPCInferenceService/.*$"


@dataclass(frozen=True, slots=True)
class Backend:
    """A Service that rules of a route send requests to, with the filters and the timeout of those rules.

    `proxy` is what stands in front of it. `canaries` (name, percent) are Services beside it that share its requests.
    """

    service: str
    namespace: str
    filters: tuple[Object, ...] = ()
    timeout: str | None = None
    proxy: ServiceAddress | None = None
    canaries: tuple[tuple[str, int], ...] | None = None

    def rule(self, matches: list[Object], port: int = PORT) -> Object:
        rule: Object = {"matches": matches, "filters": list(self.filters), "backendRefs": self._references(port)}
        if self.timeout is not None:
            rule["timeouts"] = {"request": self.timeout}
        return rule

    def _references(self, port: int) -> list[Object]:
        stable = _reference(*(self.proxy or (self.service, self.namespace, port)))
        if self.canaries is None:
            return [stable]
        rest = 100 - sum(percent for _, percent in self.canaries)
        shares = [{**_reference(name, self.namespace, port), "weight": percent} for name, percent in self.canaries]
        return [{**stable, "weight": rest}, *shares]


def _reference(name: str, namespace: str, port: int) -> Object:
    return {"kind": "Service", "name": name, "namespace": namespace, "port": port}


def http_route(metadata: Object, hosts: Sequence[str], rules: Sequence[Object], parents: Sequence[Object]) -> Object:
    return HTTP_ROUTES.manifest(
        metadata, spec={"hostnames": list(hosts), "rules": list(rules), "parentRefs": list(parents)}
    )


def gateways_of(route: Object) -> Iterator[Key]:
    """Yields the Gateways that a route names."""
    for reference in dig(route, "spec", "parentRefs") or ():
        if reference.get("kind", "Gateway") == "Gateway":
            yield Key(reference.get("namespace") or namespace_of(route), str(reference.get("name")))


def gateway_parent(gateway: str) -> Object:
    """Returns the parent reference of a Gateway that is given as `namespace/name`."""
    namespace, _, name = gateway.partition("/")
    return {"group": HTTP_ROUTES.group, "kind": "Gateway", "namespace": namespace, "name": name}


def path_match(value: str, kind: str = "RegularExpression") -> Object:
    return {"path": {"type": kind, "value": value}}


def replace_prefix(replacement: str) -> Object:
    """Returns a filter that puts something else in the place of the prefix that matched."""
    return _rewrite({"type": "ReplacePrefixMatch", "replacePrefixMatch": replacement})


def replace_path(replacement: str) -> Object:
    """Returns a filter that replaces the whole path."""
    return _rewrite({"type": "ReplaceFullPath", "replaceFullPath": replacement})


def _rewrite(path: Object) -> Object:
    return {"type": "URLRewrite", "urlRewrite": {"path": path}}


def replace_host(host: str) -> Object:
    """Returns a filter that puts another host in the place of that of the request."""
    return {"type": "URLRewrite", "urlRewrite": {"hostname": host}}


def with_rewrite(filters: tuple[Object, ...], rewrite: Object) -> tuple[Object, ...]:
    """Returns filters with one more rewrite; a rule may have a single filter of that type, which does all of it."""
    others = tuple(each for each in filters if each["type"] != rewrite["type"])
    rewrites = [each["urlRewrite"] for each in (*filters, rewrite) if each["type"] == rewrite["type"]]
    merged = {key: value for each in rewrites for key, value in each.items()}
    return (*others, {"type": rewrite["type"], "urlRewrite": merged})


def set_headers(headers: Mapping[str, str]) -> Object:
    """Returns a filter that sets headers of the request."""
    entries = [{"name": name, "value": value} for name, value in headers.items()]
    return {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": entries}}


def protocol_rules(backend: Backend, service: Object) -> list[Object]:
    """Returns one rule, or two for a Service with an HTTP and a gRPC port; the more specific one comes first."""
    ports = service["spec"]["ports"]
    grpc = next((port["port"] for port in ports if is_grpc(port)), None)
    http = next((port["port"] for port in ports if not is_grpc(port)), None)
    if grpc is None or http is None:
        return [backend.rule([path_match(ANYTHING)])]
    content = {"type": "RegularExpression", "name": "content-type", "value": "^application/grpc.*"}
    matches = [{**path_match(GRPC_METHODS), "headers": [content]}]
    return [backend.rule(matches, grpc), backend.rule([path_match(ANYTHING)], http)]


class Rejection(NamedTuple):
    """Why a route is not ready."""

    reason: str
    message: str


def rejection(route: Object) -> Rejection | None:
    """Returns what the first gateway that does not accept the route says; None for a route that all of them accept."""
    parents = dig(route, "status", "parents")
    if not parents:
        return Rejection("ParentStatusNotAvailable", "HttpRouteNotReady")
    for parent in parents:
        for condition in parent.get("conditions") or ():
            if condition.get("status") == "False":
                return Rejection(condition.get("reason", ""), condition.get("message", ""))
    return None

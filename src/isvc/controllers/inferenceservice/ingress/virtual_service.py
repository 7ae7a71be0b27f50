"""The Istio VirtualService of a Knative service.

Every request goes to Knative's local gateway; the rewritten Host header says which component it is for. A host is
matched by a regular expression that lets a port follow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from isvc.kube.objects import Object
from isvc.serving.hosts import service_host
from isvc.serving.http_routes import EXPLAIN, EXPLAIN_BELOW_PATH
from isvc.serving.thirdparty import VIRTUAL_SERVICES

_MESH = "mesh"


@dataclass(frozen=True, slots=True)
class Gateways:
    """Where requests come in, and the service of Knative's local gateway that they are sent on to."""

    public: str
    local: str
    knative_local_service: str


@dataclass(frozen=True, slots=True)
class Exposure:
    """What is exposed of one InferenceService, and under which names."""

    name: str
    namespace: str
    backend: str
    explainer: str | None
    host: str
    internal: bool
    additional_hosts: Sequence[str] = ()
    path: str | None = None
    path_host: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def internal_host(self) -> str:
        return service_host(self.name, self.namespace)


def virtual_service(exposure: Exposure, gateways: Gateways) -> Object:
    metadata: Object = {"name": exposure.name, "namespace": exposure.namespace}
    if exposure.annotations:
        metadata["annotations"] = dict(exposure.annotations)
    if exposure.labels:
        metadata["labels"] = dict(exposure.labels)
    entrances = [gateways.local, _MESH] + ([] if exposure.internal else [gateways.public])
    return VIRTUAL_SERVICES.manifest(
        metadata,
        spec={
            "hosts": _hosts(exposure),
            "gateways": entrances,
            "http": [*_routes_by_host(exposure, gateways), *_routes_by_path(exposure, gateways)],
        },
    )


def _hosts(exposure: Exposure) -> list[str]:
    hosts = [exposure.internal_host]
    if not exposure.internal:
        hosts.append(exposure.host)
    if exposure.path is not None:
        hosts.append(exposure.path_host)
    if not exposure.internal:
        hosts += [host for host in exposure.additional_hosts if host not in hosts]
    return hosts


def _routes_by_host(exposure: Exposure, gateways: Gateways) -> list[Object]:
    routes = []
    if exposure.explainer:
        matches = _host_matches(exposure, gateways, {"uri": {"regex": EXPLAIN}})
        routes.append(_route(matches, exposure.explainer, exposure, gateways))
    routes.append(_route(_host_matches(exposure, gateways, {}), exposure.backend, exposure, gateways))
    return routes


def _host_matches(exposure: Exposure, gateways: Gateways, uri: Object) -> list[Object]:
    matches = [{**uri, **_authority(exposure.internal_host), "gateways": [gateways.local, _MESH]}]
    if not exposure.internal:
        for host in [exposure.host, *exposure.additional_hosts]:
            match = {**uri, **_authority(host), "gateways": [gateways.public]}
            if match not in matches:
                matches.append(match)
    return matches


def _routes_by_path(exposure: Exposure, gateways: Gateways) -> list[Object]:
    """Returns the rules for one shared host, under which every service has a path of its own that is cut off again."""
    if exposure.path is None:
        return []
    path = exposure.path.removesuffix("/")
    at = {**_authority(exposure.path_host), "gateways": [gateways.public]}
    routes = []
    if exposure.explainer:
        pattern = path + EXPLAIN_BELOW_PATH
        rewrite = {"uriRegexRewrite": {"match": pattern, "rewrite": "\\1"}}
        matches = [{"uri": {"regex": pattern}, **at}]
        routes.append(_route(matches, exposure.explainer, exposure, gateways) | {"rewrite": rewrite})
    matches = [{"uri": {"prefix": f"{path}/"}, **at}, {"uri": {"exact": path}, **at}]
    routes.append(_route(matches, exposure.backend, exposure, gateways) | {"rewrite": {"uri": "/"}})
    return routes


def _route(matches: list[Object], component: str, exposure: Exposure, gateways: Gateways) -> Object:
    headers = {
        "Host": service_host(component, exposure.namespace),
        "KServe-Isvc-Name": exposure.name,
        "KServe-Isvc-Namespace": exposure.namespace,
    }
    destination = {"host": gateways.knative_local_service, "port": {"number": 80}}
    return {
        "match": matches,
        "route": [{"destination": destination, "weight": 100}],
        "headers": {"request": {"set": headers}},
    }


def _authority(host: str) -> Object:
    quoted = re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", host)
    return {"authority": {"regex": rf"^{quoted}(?::\d{{1,5}})?$"}}

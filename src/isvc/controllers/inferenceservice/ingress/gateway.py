"""Gateway API: an HTTPRoute for the service and one for each component, ready when the gateway says so.

With path-based URLs a service has one more, for its path below the ingress domain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from isvc.controllers.inferenceservice.ingress.address import report_addresses
from isvc.controllers.inferenceservice.ingress.interceptor import request_seconds
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import INGRESS, Deployed, Planned
from isvc.controllers.inferenceservice.status.edit import INGRESS_READY, STOPPED, Readiness, StatusEdit
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Child, Hold, Part, Retire, Want
from isvc.engine.policies import SPEC_AND_OUR_METADATA
from isvc.kube.conditions import TRUE
from isvc.kube.objects import Object, labels_of, without
from isvc.kube.resource import Resource
from isvc.serving import http_routes, names
from isvc.serving.config.sections import IngressConfig
from isvc.serving.hosts import additional_hosts, domain_name, is_hidden, service_host, url_path, without_port
from isvc.serving.thirdparty import HTTP_ROUTES

_BY_PATH: Final = "Path"
KINDS: Final[frozenset[Resource]] = frozenset({HTTP_ROUTES})


def is_chosen(settings: IngressConfig) -> bool:
    return settings.enable_gateway_api


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A route that the service should have. `needs` are the components that have to be ready before it makes sense."""

    title: str
    name: str
    needs: tuple[str, ...]


def unchanged_hosts(observed: Observed, planned: Planned) -> Mapping[str, Sequence[str]]:
    return {}  # every host is rewritten


def plan(observed: Observed, planned: Planned, readiness: Readiness) -> tuple[Part, ...]:
    if observed.stopped or is_hidden(planned.service, observed.config.ingress):
        return (Part(INGRESS, Retire("not exposed"), KINDS),)
    wanted = list(_wanted_routes(observed))
    possible = [route for route in wanted if all(readiness[kind].status == TRUE for kind in route.needs)]
    manifests = (_manifest(observed, planned, route) for route in possible)
    children = tuple(Child(HTTP_ROUTES, manifest, policy=SPEC_AND_OUR_METADATA) for manifest in manifests)
    part = Part(INGRESS, Want(children), KINDS)
    if len(possible) == len(wanted):
        return (part,)
    # A route whose component is not ready stays as it is, so nothing may be pruned while there is one.
    return (part, Part(INGRESS, Hold("ComponentNotReady", "a route waits for its component"), KINDS))


def fold(edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> None:
    conditions = edit.conditions
    if not is_hidden(planned.service, observed.config.ingress):
        if observed.stopped:
            conditions.mark_false(INGRESS_READY, STOPPED)
            return
        for route in _wanted_routes(observed):
            live = outcome.live(HTTP_ROUTES, route.name) or observed.live.get((HTTP_ROUTES, route.name))
            if problem := _problem(route.title, live):
                conditions.mark_false(INGRESS_READY, *problem)
                return
    conditions.mark_true(INGRESS_READY)
    if not observed.stopped:
        report_addresses(edit, observed, planned, outcome)


def _wanted_routes(observed: Observed) -> Iterator[_Wanted]:
    name = observed.name
    # Names of routes do not follow spec.predictor.name, so that promoting a canary moves no host.
    routes = {
        names.PREDICTOR: names.predictor(name),
        names.TRANSFORMER: names.transformer(name),
        names.EXPLAINER: names.explainer(name),
    }
    kinds = tuple(kind for kind in routes if getattr(observed.service.spec, kind) is not None)
    yield from (_Wanted(kind.title(), routes[kind], (kind,)) for kind in kinds)
    yield _Wanted("InferenceService", name, kinds)
    if observed.config.ingress.has_path_urls:
        yield _Wanted(_BY_PATH, names.path_route(name), kinds)


def _problem(title: str, route: Object | None) -> tuple[str, str] | None:
    """Returns the reason and message of what keeps a route from being ready."""
    if route is None:
        return f"{title} Deployment NotReady", f"{title} HTTPRoute not created"
    rejection = http_routes.rejection(route)
    return (rejection.reason, f"{title} {rejection.message}") if rejection else None


def _manifest(observed: Observed, planned: Planned, route: _Wanted) -> Object:
    settings = observed.config.ingress
    hosts, rules = _hosts_and_rules(observed, planned, route)
    metadata: Object = {"name": route.name, "namespace": observed.namespace, "annotations": dict(observed.annotations)}
    if labels := without(labels_of(planned.service), observed.config.inference_service.service_label_disallowed_list):
        metadata["labels"] = labels
    parent = http_routes.gateway_parent(settings.kserve_ingress_gateway)
    return http_routes.http_route(metadata, hosts, rules, [parent])


def _hosts_and_rules(observed: Observed, planned: Planned, route: _Wanted) -> tuple[list[str], list[Object]]:
    settings = observed.config.ingress
    shared = without_port(settings.ingress_domain)
    if route.title == _BY_PATH:
        return [shared], _rewriting_path_rules(observed, planned)
    host = domain_name(route.name, planned.service, settings)
    hosts = [without_port(host)]
    if route.name != observed.name:
        return hosts, _component_rules(observed, planned, route.title.lower())
    hosts += additional_hosts(host, settings)
    rules = _service_rules(observed, planned)
    if settings.path_template and not settings.has_path_urls:
        return [*hosts, shared], rules + _path_rules(observed, planned)
    return hosts, rules


def _component_rules(observed: Observed, planned: Planned, kind: str) -> list[Object]:
    """All requests go to the component; gRPC to its own port where it has both."""
    return http_routes.protocol_rules(_backend(observed, planned, kind), planned.deployed[kind].service)


def _service_rules(observed: Observed, planned: Planned) -> list[Object]:
    rules = []
    if "explainer" in planned.deployed:
        backend = _backend(observed, planned, "explainer")
        rules.append(backend.rule([http_routes.path_match(http_routes.EXPLAIN)]))
    return rules + _component_rules(observed, planned, planned.entrance.kind)


def _path_rules(observed: Observed, planned: Planned) -> list[Object]:
    """Returns the same under one shared host, each service at its own path."""
    path = url_path(observed.name, observed.namespace, observed.config.ingress).removesuffix("/")
    rules = []
    if "explainer" in planned.deployed:
        backend = _backend(observed, planned, "explainer")
        rules.append(backend.rule([http_routes.path_match(path + http_routes.EXPLAIN_BELOW_PATH)]))
    backend = _backend(observed, planned, planned.entrance.kind)
    return [*rules, backend.rule([http_routes.path_match(f"{path}/")])]


def _rewriting_path_rules(observed: Observed, planned: Planned) -> list[Object]:
    """Returns the same with the path cut off, so that the model server sees the paths that it knows."""
    path = url_path(observed.name, observed.namespace, observed.config.ingress).removesuffix("/")
    rules = []
    if "explainer" in planned.deployed:
        explain = f"/v1/models/{observed.name}:explain"
        backend = _with_rewrite(_backend(observed, planned, "explainer"), http_routes.replace_path(explain))
        rules.append(backend.rule([http_routes.path_match(path + explain, "Exact")]))
    backend = _with_rewrite(_backend(observed, planned, planned.entrance.kind), http_routes.replace_prefix("/"))
    return [*rules, backend.rule([http_routes.path_match(path, "PathPrefix")])]


def _with_rewrite(backend: http_routes.Backend, rewrite: Object) -> http_routes.Backend:
    return replace(backend, filters=http_routes.with_rewrite(backend.filters, rewrite))


def _backend(observed: Observed, planned: Planned, kind: str) -> http_routes.Backend:
    headers = {"KServe-Isvc-Name": observed.name, "KServe-Isvc-Namespace": observed.namespace}
    deployed = planned.deployed[kind]
    backend = http_routes.Backend(
        deployed.component.name,
        observed.namespace,
        filters=(http_routes.set_headers(headers),),
        timeout=_timeout(observed, deployed),
        canaries=_canary_shares(planned) if kind == names.PREDICTOR and planned.canaries else None,
    )
    if deployed.metric is None:
        return backend
    host = service_host(names.interceptor_alias(deployed.component.name), observed.namespace)
    through = replace(backend, proxy=observed.config.autoscaler.interceptor)
    return _with_rewrite(through, http_routes.replace_host(host))


def _timeout(observed: Observed, deployed: Deployed) -> str | None:
    """A request that wakes a component has to wait for it first."""
    if observed.config.ingress.disable_http_route_timeout:
        return None
    waiting = 0 if deployed.metric is None else deployed.metric.wait
    return f"{waiting + request_seconds(observed, deployed.kind)}s"


def _canary_shares(planned: Planned) -> tuple[tuple[str, int], ...]:
    return tuple((canary.deployed.component.name, canary.percent) for canary in planned.canaries if canary.ready)

"""Reads what lies around a service: gateways, routes and pools that it refers to, and other services it meets there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from isvc.api.llm.router import HTTPRouteSpec
from isvc.api.llm.v1alpha2 import RouterSpec
from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.observed import Merged, Network
from isvc.controllers.llmisvc.router.backends import backends
from isvc.controllers.llmisvc.router.models import routing_names
from isvc.kube.objects import Key, Object, dig, is_being_deleted, labels_of, name_of, namespace_of
from isvc.kube.resource import SERVICES, Resource
from isvc.serving.llm import names
from isvc.serving.thirdparty import GATEWAY_CLASSES, GATEWAYS, HTTP_ROUTES, INFERENCE_POOLS
from isvc.toolkit.cache import Reader
from isvc.toolkit.store import Indexer

GATEWAY_NAME = "gateway.networking.k8s.io/gateway-name"
GATEWAY_INDEX, GROUP_INDEX, MODEL_INDEX = "gateway", "routing group", "model"


def gateway_of(service: Object) -> Iterable[str]:
    """Indexes Services by the gateway whose traffic they take."""
    gateway = labels_of(service).get(GATEWAY_NAME)
    return (str(Key(namespace_of(service), gateway)),) if gateway else ()


def group_of(raw: Object) -> Iterable[str]:
    """Indexes LLMInferenceServices by their routing group."""
    group = dig(raw, "spec", "router", "route", "group")
    return (f"{namespace_of(raw)}/{group}",) if group else ()


INDEXERS: Mapping[str, Indexer] = {GROUP_INDEX: group_of, MODEL_INDEX: routing_names}
"""Indexes over LLMInferenceServices."""
SERVICE_INDEXERS: Mapping[str, Indexer] = {GATEWAY_INDEX: gateway_of}
"""Indexes over Services."""


def observe_network(reader: Reader, merged: Merged, raw: Object) -> Network:
    """`Network.references` names all that was looked for, there or not."""
    looking, router, namespace = _Looking(reader), merged.spec.router or RouterSpec(), namespace_of(raw)
    http = (router.route and router.route.http) or HTTPRouteSpec()
    routes = {each["name"]: looking.get(HTTP_ROUTES, each["name"], namespace) for each in http.refs}
    specs = [http.spec or {}, *((route or {}).get("spec") or {} for route in routes.values())]
    parents = [parent for spec in specs for parent in spec.get("parentRefs") or ()]
    keys = {Key(parent.get("namespace") or namespace, parent.get("name", "")) for parent in parents}
    keys |= {Key(each.namespace or namespace, each.name) for each in (router.gateway.refs if router.gateway else ())}
    gateways = {key: gateway for key in sorted(keys) if (gateway := looking.get(GATEWAYS, key.name, key.namespace))}
    classes = {str(dig(gateway, "spec", "gatewayClassName") or "") for gateway in gateways.values()}
    pool = router.scheduler.users_pool if router.scheduler else ""
    found_pool = looking.get(INFERENCE_POOLS, pool, namespace) if pool else None
    return Network(
        gateways=gateways,
        gateway_classes={name: found for name in sorted(classes) if (found := looking.get(GATEWAY_CLASSES, name))},
        gateway_services={key: service for key in gateways if (service := _service(looking, key))},
        routes={name: route for name, route in routes.items() if route},
        pools={(INFERENCE_POOLS, pool): found_pool} if found_pool else {},
        members=_members(reader, router.route.group if router.route else None, namespace),
        namesakes=_namesakes(reader, merged.raw, raw),
        references=frozenset(looking.references),
    )


def waiting_for(reader: Reader, raw: Object) -> str:
    """Returns a member of the group whose route still leads to this service, which cannot go yet; "" if none does."""
    namespace, name = namespace_of(raw), name_of(raw)
    leaving = {names.inference_pool(name), names.workload_service(name)}
    for index in group_of(raw):
        for member in reader.by_index(LLM_INFERENCE_SERVICES, GROUP_INDEX, index):
            if name_of(member) == name or is_being_deleted(member):
                continue
            route = reader.get(HTTP_ROUTES, names.route(name_of(member)), namespace)
            if route and leaving & {backend.get("name") for backend in backends(route)}:
                return name_of(member)
    return ""


class _Looking:
    """Reads, and notes what was looked for: a change of any of it concerns the service."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.references: set[tuple[Resource, Key]] = set()

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        self.references.add((resource, Key(namespace, name)))
        return self.reader.get(resource, name, namespace) if self.reader.serves(resource) else None


def _service(looking: _Looking, gateway: Key) -> Object | None:
    """Returns the Service that takes the gateway's traffic: one that is labelled so, or one of the same name."""
    labelled = looking.reader.by_index(SERVICES, GATEWAY_INDEX, str(gateway))
    by_name = looking.get(SERVICES, gateway.name, gateway.namespace)
    return min(labelled, key=name_of) if labelled else by_name


def _members(reader: Reader, group: str | None, namespace: str) -> list[Object]:
    return reader.by_index(LLM_INFERENCE_SERVICES, GROUP_INDEX, f"{namespace}/{group}") if group else []


def _namesakes(reader: Reader, spec: Object, raw: Object) -> list[Object]:
    mine = routing_names({**raw, "spec": spec, "status": {}})
    found = {
        name_of(other): other for model in mine for other in reader.by_index(LLM_INFERENCE_SERVICES, MODEL_INDEX, model)
    }
    return [other for name, other in sorted(found.items()) if name != name_of(raw)]

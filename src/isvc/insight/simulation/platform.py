"""Plays the rest of the cluster: the status that Kubernetes, Knative and gateways report once all is healthy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from isvc.kube.objects import Object, dig, labels_of, name_of, namespace_of
from isvc.kube.pods import replicas_of
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.serving import knative
from isvc.serving.thirdparty import (
    GATEWAYS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    KNATIVE_SERVICES,
    LEADER_WORKER_SETS,
    SCALED_OBJECTS,
)

CONTROLLER: Final = "isvc.dev/simulated"


class Platform:
    """`domains` are Knative's; every pool is accepted by the `gateways`, given as references."""

    def __init__(self, domains: tuple[str, ...] = (), gateways: tuple[Object, ...] = ()) -> None:
        self._domains = domains
        self._gateways = gateways
        self._reports: Mapping[Resource, Callable[[Object], Object]] = {
            DEPLOYMENTS: _deployment,
            LEADER_WORKER_SETS: _leader_worker_set,
            KNATIVE_SERVICES: self._knative_service,
            GATEWAYS: _gateway,
            HTTP_ROUTES: _route,
            SCALED_OBJECTS: _scaled_object,
            INFERENCE_POOLS: lambda pool: {"parents": self._accepted_parents(pool)},
            INFERENCE_POOLS_V1ALPHA2: lambda pool: {"parent": self._accepted_parents(pool)},
        }

    @property
    def kinds(self) -> tuple[Resource, ...]:
        return tuple(self._reports)

    def healthy(self, resource: Resource, obj: Object) -> Object:
        """Returns the object's status once it is healthy."""
        return self._reports[resource](obj)

    def _knative_service(self, service: Object) -> Object:
        name, namespace = name_of(service), namespace_of(service)
        revision = f"{name}-{_generation(service):05d}"
        traffic = dig(service, "spec", "traffic") or [{"latestRevision": True, "percent": 100}]
        return {
            "observedGeneration": _generation(service),
            "url": knative.default_url(name, namespace, labels_of(service), self._domains),
            "address": {"url": f"http://{name}.{namespace}.svc.cluster.local"},
            "latestCreatedRevisionName": revision,
            "latestReadyRevisionName": revision,
            "traffic": [{**each, "revisionName": each.get("revisionName") or revision} for each in traffic],
            "conditions": [_condition(kind) for kind in ("ConfigurationsReady", "Ready", "RoutesReady")],
        }

    def _accepted_parents(self, pool: Object) -> list[Object]:
        conditions = [_observed_condition(pool, "Accepted"), _observed_condition(pool, "ResolvedRefs")]
        return [{"parentRef": gateway, "conditions": conditions} for gateway in self._gateways]


def _deployment(deployment: Object) -> Object:
    return {
        "observedGeneration": _generation(deployment),
        **dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), replicas_of(deployment)),
        "conditions": [
            _condition("Available", "MinimumReplicasAvailable"),
            _condition("Progressing", "NewReplicaSetAvailable"),
        ],
    }


def _leader_worker_set(workers: Object) -> Object:
    return {
        **dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas"), replicas_of(workers)),
        "conditions": [_condition("Available", "AllGroupsReady")],
    }


def _scaled_object(scaled: Object) -> Object:
    at_rest = [{**_condition(kind), "status": "False"} for kind in ("Active", "Fallback", "Paused")]
    return {"conditions": [_condition("Ready", "ScaledObjectReady"), *at_rest]}


def _gateway(gateway: Object) -> Object:
    return {
        "addresses": [{"type": "IPAddress", "value": "203.0.113.1"}],
        "conditions": [_observed_condition(gateway, "Accepted"), _observed_condition(gateway, "Programmed")],
    }


def _route(route: Object) -> Object:
    accepted = [_observed_condition(route, "Accepted"), _observed_condition(route, "ResolvedRefs")]
    parents = dig(route, "spec", "parentRefs") or ()
    return {"parents": [{"parentRef": each, "controllerName": CONTROLLER, "conditions": accepted} for each in parents]}


def _generation(obj: Object) -> int:
    return int(dig(obj, "metadata", "generation") or 1)


def _condition(kind: str, reason: str = "") -> Object:
    condition = {"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {**condition, "reason": reason} if reason else condition


def _observed_condition(obj: Object, kind: str) -> Object:
    return {**_condition(kind, kind), "observedGeneration": _generation(obj), "message": ""}

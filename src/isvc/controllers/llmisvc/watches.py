"""What makes a service worth another look, and how the controller is put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.dependencies import Dependencies
from isvc.controllers.llmisvc.observe import POD_INDEX, PresetSettings, service_of_pod
from isvc.controllers.llmisvc.reconcile import EventRecorder, Reconciler
from isvc.controllers.llmisvc.router.group import traffic_changed
from isvc.controllers.llmisvc.router.observe import GROUP_INDEX, INDEXERS, SERVICE_INDEXERS, gateway_of
from isvc.controllers.llmisvc.usage import CONFIG_INDEX, configs_of, users_of
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.kube.owners import controller_of
from isvc.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from isvc.serving.config import CONFIG_MAP
from isvc.serving.llm.labels import LLM, PART_OF
from isvc.serving.thirdparty import (
    GATEWAY_CLASSES,
    GATEWAYS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    LEADER_WORKER_SETS,
    SCALED_OBJECTS,
)
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock
from isvc.toolkit.controller import Controller, Mapper, Watch, owner_of

WORKERS: Final = 64  # most of them wait for the API server
OURS: Final = f"{PART_OF}={LLM}"


def controller(
    client: Client,
    cache: Cache,
    recorder: EventRecorder,
    clock: Clock,
    system_namespace: str,
    presets: PresetSettings,
) -> Controller:
    dependencies = Dependencies()
    mirror(cache, system_namespace, presets)
    reconciler = Reconciler(client, cache, recorder, clock, system_namespace, presets, dependencies)
    watches = _watches(cache, dependencies, system_namespace)
    return Controller(
        "llminferenceservice", reconciler.reconcile, watches, workers=WORKERS, heeds_own_writes=False, clock=clock
    )


def mirror(cache: Cache, system_namespace: str, presets: PresetSettings) -> None:
    """Say which objects are read from memory, where that is not all of a kind."""
    indexers = {**INDEXERS, CONFIG_INDEX: lambda service: configs_of(service, presets.prefix)}
    cache.watch(LLM_INFERENCE_SERVICES, indexers=indexers)
    cache.watch(CONFIG_MAPS, namespace=system_namespace)
    cache.watch(SERVICES, indexers=SERVICE_INDEXERS)
    by_service = {POD_INDEX: lambda pod: map(str, service_of_pod(pod))}
    cache.watch(PODS, labels=OURS, transform=_addresses, indexers=by_service)
    for resource in (DEPLOYMENTS, SECRETS, HORIZONTAL_POD_AUTOSCALERS, CLUSTER_ROLE_BINDINGS):
        cache.watch(resource, labels=OURS)
    cache.watch(CLUSTER_STORAGE_CONTAINERS, optional=True)


def _watches(cache: Cache, dependencies: Dependencies, system_namespace: str) -> Sequence[Watch]:
    owner = owner_of(LLM_INFERENCE_SERVICES)

    def dependents(resource: Resource) -> Mapper:
        return lambda obj: dependencies.of(resource, Key.of(obj))

    def behind_gateway(service: Object) -> Iterable[Key]:
        gateways = (Key(*gateway.split("/")) for gateway in gateway_of(service))
        return (key for gateway in gateways for key in dependencies.of(GATEWAYS, gateway))

    def users(config: Object) -> Iterable[Key]:
        return users_of(config, cache, system_namespace)

    def members(service: Object) -> Iterable[Key]:
        group = dig(service, "spec", "router", "route", "group")
        members = cache.keys(LLM_INFERENCE_SERVICES, GROUP_INDEX, f"{namespace_of(service)}/{group}") if group else ()
        return (member for member in members if member != Key.of(service))

    def neighbours(account: Object) -> Iterable[Key]:
        return map(Key.of, cache.list(LLM_INFERENCE_SERVICES, namespace_of(account)))

    def everybody(_: Object) -> Iterable[Key]:
        return map(Key.of, cache.list(LLM_INFERENCE_SERVICES))

    def is_configuration(before: Object | None, after: Object | None) -> bool:
        obj = after or before or {}
        is_ours = (namespace_of(obj), name_of(obj)) == (system_namespace, CONFIG_MAP)
        return is_ours and (before or {}).get("data") != (after or {}).get("data")

    owned = (DEPLOYMENTS, SERVICES, SECRETS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, HORIZONTAL_POD_AUTOSCALERS)
    owned_if_there = (LEADER_WORKER_SETS, SCALED_OBJECTS, RESOURCE_CLAIM_TEMPLATES)
    shared = (HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2)
    return (
        Watch(LLM_INFERENCE_SERVICES),
        Watch(LLM_INFERENCE_SERVICES, to=members, when=_traffic_changed),
        Watch(LLM_INFERENCE_SERVICE_CONFIGS, to=users, when=_spec_changed),
        *(Watch(resource, to=owner) for resource in owned),
        *(Watch(resource, to=owner, optional=True) for resource in (*owned_if_there, *shared)),
        *(Watch(resource, to=dependents(resource), optional=True) for resource in (*shared, GATEWAYS, GATEWAY_CLASSES)),
        Watch(SERVICES, to=dependents(SERVICES)),
        Watch(SERVICES, to=behind_gateway),
        Watch(CONFIG_MAPS, to=dependents(CONFIG_MAPS)),
        Watch(CONFIG_MAPS, to=everybody, when=is_configuration),
        Watch(SERVICE_ACCOUNTS, to=neighbours, when=_account_changed),
        Watch(PODS, to=service_of_pod, when=_pod_changed),
    )


def _spec_changed(before: Object | None, after: Object | None) -> bool:
    return before is None or after is None or before.get("spec") != after.get("spec")


def _traffic_changed(before: Object | None, after: Object | None) -> bool:
    return before is None or after is None or traffic_changed(before, after)


def _account_changed(before: Object | None, after: Object | None) -> bool:
    """Of accounts that are not a service's own: those of a workload, or the default one whose secrets are copied."""
    if controller_of(after or before or {}) is not None:
        return False
    return any((before or {}).get(field) != (after or {}).get(field) for field in ("secrets", "imagePullSecrets")) or (
        before is None or after is None
    )


def _pod_changed(before: Object | None, after: Object | None) -> bool:
    """Certificates name the addresses of pods; Deployments tell the rest."""
    if before is None or after is None:
        return False
    fields = ("podIPs", "initContainerStatuses")
    return any(dig(before, "status", field) != dig(after, "status", field) for field in fields)


def _addresses(pod: Object) -> Object:
    """The little of a pod that services are planned from."""
    metadata = pod["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences")
    status = pod.get("status") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {key: metadata[key] for key in kept if key in metadata},
        "status": {key: status[key] for key in ("phase", "podIPs", "podIP", "initContainerStatuses") if key in status},
    }

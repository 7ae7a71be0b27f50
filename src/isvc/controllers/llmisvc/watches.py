"""What triggers a reconcile of an LLMInferenceService, and how its controller is built."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from isvc.api.annotations import WAKE_ON_REQUEST
from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc import pending
from isvc.controllers.llmisvc.kind import make_kind
from isvc.controllers.llmisvc.observe import POD_INDEX, service_of_pod
from isvc.controllers.llmisvc.router.group import traffic_changed
from isvc.controllers.llmisvc.router.models import routing_names
from isvc.controllers.llmisvc.router.observe import (
    GROUP_INDEX,
    INDEXERS,
    MODEL_INDEX,
    SERVICE_INDEXERS,
    gateway_of,
    group_of,
)
from isvc.controllers.llmisvc.usage import CONFIG_INDEX, config_indexer, users_of
from isvc.engine.dependents import Dependents
from isvc.engine.reconciler import Reconciler
from isvc.kube.objects import Key, Object, annotations_of, dig, namespace_of
from isvc.kube.owners import controller_of
from isvc.kube.resource import (
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    HORIZONTAL_POD_AUTOSCALERS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from isvc.serving.config.current import settings_changed
from isvc.serving.environment import Environment
from isvc.serving.llm.labels import OURS
from isvc.serving.thirdparty import (
    GATEWAY_CLASSES,
    GATEWAYS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    LEADER_WORKER_SETS,
    SCALED_OBJECTS,
)
from isvc.serving.workload import scalers
from isvc.toolkit.cache import Memory
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Mapper, OwnerOf, Watch, changed, spec_changed
from isvc.toolkit.reads import Read

WORKERS: Final = 64  # most of them wait for the API server


def controller(context: Context, environment: Environment) -> Controller:
    reconciler = Reconciler(make_kind(context.cache, environment), context)
    return Controller(
        "llminferenceservice",
        reconciler.reconcile,
        _watches(context.cache, reconciler.dependents, environment.system_namespace),
        workers=WORKERS,
        reads=reads(environment),
        ignore_own_writes_for=LLM_INFERENCE_SERVICES,
        clock=context.clock,
    )


_OF_ALL_SERVICES: Final = (CONFIG_MAPS, LLM_INFERENCE_SERVICE_CONFIGS, SERVICES)
"""What lies in the system namespace for services of any: the configuration, presets, and the Services of gateways."""


def reads(environment: Environment) -> tuple[Read, ...]:
    """Returns what is read beyond what is watched, or not as it comes.

    Children of many owners are read by our label.
    """
    system_namespace = environment.system_namespace
    services = {**INDEXERS, CONFIG_INDEX: config_indexer(environment.preset_prefix)}
    labelled = (SECRETS, HORIZONTAL_POD_AUTOSCALERS, POD_DISRUPTION_BUDGETS, CLUSTER_ROLE_BINDINGS)
    return (
        Read(LLM_INFERENCE_SERVICES, indexers=services),
        *(Read(resource, namespace=system_namespace) for resource in _OF_ALL_SERVICES),
        Read(LLM_INFERENCE_SERVICE_CONFIGS),
        Read(GATEWAYS, optional=True),
        Read(GATEWAYS, namespace=system_namespace, optional=True),
        Read(CONFIG_MAPS, labels=OURS),
        Read(SERVICES, indexers=SERVICE_INDEXERS),
        Read(PODS, labels=OURS, transform=_addresses, indexers={POD_INDEX: _service_names_of_pod}),
        *(Read(resource, labels=OURS) for resource in labelled),
        *pending.READS,
        Read(ENDPOINT_SLICES, labels=scalers.SELECTOR, indexers={scalers.INDEX: scalers.scaler_of_slice}),
    )


def _service_names_of_pod(pod: Object) -> Iterable[str]:
    return map(str, service_of_pod(pod))


def _watches(cache: Memory, all_dependents: Dependents, system_namespace: str) -> Sequence[Watch]:
    owner, delay = OwnerOf(LLM_INFERENCE_SERVICES), pending.delay_by_children(cache)

    def dependents(resource: Resource) -> Mapper:
        return lambda obj: all_dependents.of(resource, Key.of(obj))

    def behind_gateway(service: Object) -> Iterable[Key]:
        gateways = (Key(*gateway.split("/")) for gateway in gateway_of(service))
        return (key for gateway in gateways for key in all_dependents.of(GATEWAYS, gateway))

    def users(config: Object) -> Iterable[Key]:
        return users_of(config, cache, system_namespace)

    def members(service: Object) -> Iterable[Key]:
        found = (cache.keys(LLM_INFERENCE_SERVICES, GROUP_INDEX, group) for group in group_of(service))
        return (member for members in found for member in members if member != Key.of(service))

    def namesakes(service: Object) -> Iterable[Key]:
        found = (cache.keys(LLM_INFERENCE_SERVICES, MODEL_INDEX, model) for model in routing_names(service))
        return {key for keys in found for key in keys if key != Key.of(service)}

    def neighbours(account: Object) -> Iterable[Key]:
        return cache.all_keys(LLM_INFERENCE_SERVICES, namespace_of(account))

    def everybody(_: Object) -> Iterable[Key]:
        return cache.all_keys(LLM_INFERENCE_SERVICES)

    def sleepers(_: Object) -> Iterable[Key]:
        services = ((key, cache.get(LLM_INFERENCE_SERVICES, key.name, key.namespace)) for key in everybody(_))
        return (key for key, service in services if service and WAKE_ON_REQUEST in annotations_of(service))

    owned = (DEPLOYMENTS, SERVICES, SECRETS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, HORIZONTAL_POD_AUTOSCALERS)
    owned_if_there = (LEADER_WORKER_SETS, SCALED_OBJECTS, RESOURCE_CLAIM_TEMPLATES)
    shared = (HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_POOLS_V1ALPHA2)
    return (
        Watch(LLM_INFERENCE_SERVICES),
        Watch(LLM_INFERENCE_SERVICES, to=members, when=_traffic_changed),
        # One that comes to serve a model of the same name takes requests from another.
        Watch(LLM_INFERENCE_SERVICES, to=namesakes, when=changed(routing_names)),
        Watch(LLM_INFERENCE_SERVICE_CONFIGS, to=users, when=spec_changed),
        Watch(LLM_INFERENCE_SERVICE_CONFIGS, to=dependents(LLM_INFERENCE_SERVICE_CONFIGS), when=spec_changed),
        *(Watch(resource, to=owner, delay=delay, when_quiet=True) for resource in owned),
        *(
            Watch(resource, to=owner, optional=True, delay=delay, when_quiet=True)
            for resource in (*owned_if_there, *shared)
        ),
        *(
            Watch(resource, to=dependents(resource), optional=True, past=False)
            for resource in (*shared, GATEWAYS, GATEWAY_CLASSES)
        ),
        Watch(POD_DISRUPTION_BUDGETS, to=owner, when=spec_changed),
        Watch(ENDPOINT_SLICES, to=sleepers, when=scalers.availability_changed),
        Watch(SERVICES, to=dependents(SERVICES), past=False),
        Watch(SERVICES, to=behind_gateway),
        Watch(CONFIG_MAPS, to=dependents(CONFIG_MAPS), past=False),
        Watch(CONFIG_MAPS, to=everybody, when=partial(settings_changed, system_namespace)),
        Watch(SERVICE_ACCOUNTS, to=neighbours, when=_account_changed),
        Watch(PODS, to=service_of_pod, when=_pod_changed),
    )


def _traffic_changed(before: Object | None, after: Object | None) -> bool:
    if before is None or after is None:
        return True
    return any((*group_of(before), *group_of(after))) and traffic_changed(before, after)


def _account_changed(before: Object | None, after: Object | None) -> bool:
    """Follows accounts that are not a service's own: a workload's, or the default one whose secrets are copied."""
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
    """Returns the little of a pod that services are planned from."""
    metadata = pod["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "labels", "ownerReferences")
    status = pod.get("status") or {}
    return PODS.manifest(
        {key: metadata[key] for key in kept if key in metadata},
        status={key: status[key] for key in ("phase", "podIPs", "podIP", "initContainerStatuses") if key in status},
    )

"""What triggers a reconcile of a cache, and how its controller is built."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from isvc.api.annotations import NODE_GROUP
from isvc.api.resources import (
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.controllers.localmodel.entries import cache_used_by, entries_of, key_of
from isvc.controllers.localmodel.kind import make_kind
from isvc.controllers.localmodel.node_groups import membership, reduce_node
from isvc.controllers.localmodel.observe import BY_CACHE, BY_MODEL, BY_STATE, BY_VOLUME, groups_of
from isvc.controllers.localmodel.volumes import names_of_volumes
from isvc.engine.kind import Kind
from isvc.engine.reconciler import Reconciler
from isvc.kube.objects import Key, Object, annotations_of, dig
from isvc.kube.resource import CONFIG_MAPS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from isvc.serving.config.current import settings_changed
from isvc.serving.environment import Environment
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, OwnerOf, Watch, changed, spec_changed
from isvc.toolkit.reads import Read

WORKERS = 4
COALESCE = 0.05  # nodes of a group, and lists of nodes, change together


def controller(context: Context, environment: Environment) -> Controller:
    return make_cache_controller("localmodel", make_kind(context.cache, environment), context, environment)


def make_cache_controller(name: str, kind: Kind[Any, Any], context: Context, environment: Environment) -> Controller:
    """Returns the controller of caches of the cluster or of namespaces, as its kind has it."""
    cache, resource = context.cache, kind.resource
    reconciler = Reconciler(kind, context)

    def is_ours(key: Key) -> bool:
        return bool(key.namespace) is resource.namespaced

    def caches_of(before: Object | None, after: Object | None) -> Iterator[Key]:
        """Yields the caches with other entries or states in a node's list; progress and other caches do not count."""
        was, now = _standings(before), _standings(after)
        yield from (key for key in was.keys() | now.keys() if is_ours(key) and was.get(key) != now.get(key))

    def cache_of(service: Object) -> Iterable[Key]:
        used = cache_used_by(service)
        return (used,) if used is not None and is_ours(used) else ()

    def everybody(_: Object) -> Iterable[Key]:
        return cache.all_keys(resource)

    def caches_named_by(volume: Object) -> Iterable[Key]:
        return cache.keys(LOCAL_MODEL_NAMESPACE_CACHES, BY_VOLUME, volume["metadata"]["name"])

    whose = OwnerOf(resource)
    watches = (
        Watch(resource, optional=True),
        Watch(LOCAL_MODEL_NODES, on_change=caches_of, delay=COALESCE, optional=True),
        Watch(LOCAL_MODEL_NODE_GROUPS, to=everybody, when=spec_changed, optional=True),
        Watch(NODES, to=everybody, when=changed(membership), delay=COALESCE),
        Watch(INFERENCE_SERVICES, to=cache_of, when=changed(_marks)),
        Watch(LLM_INFERENCE_SERVICES, to=cache_of, when=changed(_marks), optional=True),
        Watch(PERSISTENT_VOLUMES, to=caches_named_by if resource.namespaced else whose),
        Watch(PERSISTENT_VOLUME_CLAIMS, to=whose),
        *((Watch(PERSISTENT_VOLUME_CLAIMS, to=caches_named_by),) if resource.namespaced else ()),
        Watch(CONFIG_MAPS, to=everybody, when=partial(settings_changed, environment.system_namespace)),
    )
    return Controller(
        name,
        reconciler.reconcile,
        watches,
        workers=WORKERS,
        reads=reads(environment),
        ignore_own_writes_for=resource,
        clock=context.clock,
    )


def reads(environment: Environment) -> tuple[Read, ...]:
    """What is read not as it comes. Of services their metadata is enough, and of nodes little."""
    return (
        Read(LOCAL_MODEL_CACHES, optional=True),
        Read(LOCAL_MODEL_NAMESPACE_CACHES, indexers={BY_VOLUME: _volume_names}, optional=True),
        Read(LOCAL_MODEL_NODES, indexers={BY_MODEL: _models, BY_STATE: _states}, optional=True),
        Read(INFERENCE_SERVICES, metadata_only=True, indexers={BY_CACHE: _cache}),
        Read(LLM_INFERENCE_SERVICES, metadata_only=True, indexers={BY_CACHE: _cache}, optional=True),
        Read(NODES, transform=reduce_node),
        Read(CONFIG_MAPS, namespace=environment.system_namespace),
    )


def _standings(node: Object | None) -> dict[Key, str]:
    """Returns the caches in a node's list, each with its state there."""
    states = _model_states(node)
    return {key: states.get(str(key), "") for key in map(key_of, entries_of(node))}


def _model_states(node: Object | None) -> dict[str, str]:
    states = dig(node, "status", "modelStatus")
    return states if isinstance(states, dict) else {}


def _models(node: Object) -> Iterator[str]:
    yield from (str(key_of(entry)) for entry in entries_of(node))


def _states(node: Object) -> Iterator[str]:
    yield from (f"{model}={state}" for model, state in _model_states(node).items())


def _cache(service: Object) -> Iterable[str]:
    used = cache_used_by(service)
    return (str(used),) if used is not None else ()


def _volume_names(cache: Object) -> Iterator[str]:
    yield from names_of_volumes(Key.of(cache), groups_of(cache))


def _marks(service: Object) -> tuple[object, ...]:
    """Returns which cache a service uses, and from which group of nodes."""
    return cache_used_by(service), annotations_of(service).get(NODE_GROUP)

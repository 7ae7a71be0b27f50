"""What triggers a reconcile of an InferenceGraph, and how its controller is built."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from isvc.api.codec import DecodeError
from isvc.api.inferencegraph import InferenceGraph
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, INFERENCE_GRAPHS, INFERENCE_SERVICES, SERVING_RUNTIMES
from isvc.controllers.inferencegraph.kind import make_kind
from isvc.controllers.inferencegraph.resolve import service_names
from isvc.engine.reconciler import Reconciler
from isvc.kube.objects import Key, Object, dig, namespace_of
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SERVICES, Resource
from isvc.serving import shared_host
from isvc.serving.config.current import settings_changed
from isvc.serving.environment import Environment
from isvc.serving.thirdparty import KNATIVE_SERVICES, SCALED_OBJECTS
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller, Mapper, OwnerOf, Watch, spec_changed
from isvc.toolkit.reads import Read

BY_SERVICE = "graphs by service"
WORKERS = 4


def controller(context: Context, environment: Environment) -> Controller:
    cache = context.cache
    reconciler = Reconciler(make_kind(cache, environment), context)
    owner = OwnerOf(INFERENCE_GRAPHS)

    def graphs_of(before: Object | None, after: Object | None) -> Iterable[Key]:
        """Returns the graphs of a service with a new spec or address, all that concerns a graph; few have any."""
        graphs = cache.keys(INFERENCE_GRAPHS, BY_SERVICE, str(Key.of(after or before or {})))
        return graphs if graphs and _relevant_state(before) != _relevant_state(after) else ()

    def dependents_on(resource: Resource) -> Mapper:
        return lambda obj: reconciler.dependents.of(resource, Key.of(obj))

    watches = (
        Watch(INFERENCE_GRAPHS, optional=True),
        *shared_host.watch_places(INFERENCE_GRAPHS, cache),
        Watch(INFERENCE_SERVICES, on_change=graphs_of),
        Watch(SERVING_RUNTIMES, to=dependents_on(SERVING_RUNTIMES), when=spec_changed),
        Watch(CLUSTER_SERVING_RUNTIMES, to=dependents_on(CLUSTER_SERVING_RUNTIMES), when=spec_changed, optional=True),
        Watch(
            CONFIG_MAPS,
            to=lambda _: cache.all_keys(INFERENCE_GRAPHS),
            when=partial(settings_changed, environment.system_namespace),
        ),
        Watch(DEPLOYMENTS, to=owner),
        Watch(SERVICES, to=owner),
        Watch(KNATIVE_SERVICES, to=owner, optional=True),
    )
    return Controller(
        "inferencegraph", reconciler.reconcile, watches, workers=WORKERS, reads=reads(environment), clock=context.clock
    )


def reads(environment: Environment) -> tuple[Read, ...]:
    """What is read beyond what is watched, or not as it comes."""
    return (
        Read(INFERENCE_GRAPHS, indexers={BY_SERVICE: _services}, optional=True),
        *shared_host.READS,
        Read(HORIZONTAL_POD_AUTOSCALERS),
        Read(SCALED_OBJECTS, optional=True),
        Read(SERVING_RUNTIMES),
        Read(CLUSTER_SERVING_RUNTIMES, optional=True),
        Read(CONFIG_MAPS, namespace=environment.system_namespace),
    )


def _services(graph: Object) -> Iterable[str]:
    try:
        spec = InferenceGraph.decode(graph).spec
    except DecodeError:
        return ()  # reported when it is reconciled
    return (f"{namespace_of(graph)}/{name}" for name in service_names(spec))


def _relevant_state(service: Object | None) -> tuple[object, object]:
    return dig(service or {}, "status", "address"), dig(service or {}, "metadata", "generation")

"""Reads what a graph is planned from: the cache, and Knative's own settings."""

from __future__ import annotations

from collections.abc import Mapping

from isvc.api import InferenceService
from isvc.api.completion import read, read_other
from isvc.api.frameworks import with_model
from isvc.api.inferencegraph import InferenceGraph
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, INFERENCE_GRAPHS, INFERENCE_SERVICES, SERVING_RUNTIMES
from isvc.api.servingruntime import ServingRuntime, ServingRuntimeSpec
from isvc.controllers.inferencegraph.observed import Observed
from isvc.controllers.inferencegraph.resolve import service_names
from isvc.kube.objects import Key
from isvc.serving.config import Config
from isvc.serving.knative_settings import KnativeSettings
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.toolkit.cache import Reader


async def observe(reader: Reader, knative: KnativeSettings, config: Config, key: Key, now: str) -> Observed | None:
    graph = reader.get(INFERENCE_GRAPHS, key.name, key.namespace)
    if graph is None:
        return None
    graph, typed = read(InferenceGraph, graph)
    spec = typed.spec
    found = {name: reader.get(INFERENCE_SERVICES, name, key.namespace) for name in service_names(spec)}
    services = {
        name: read_other(InferenceService, with_model(service))
        for name, service in found.items()
        if service is not None
    }
    has_knative = reader.serves(KNATIVE_SERVICES)
    return Observed(
        graph=graph,
        spec=spec,
        config=config,
        services=services,
        runtimes=_runtimes(reader, services, key.namespace),
        has_knative=has_knative,
        zero_initial_scale=has_knative and await knative.zero_initial_scale(),
        now=now,
    )


def _runtimes(
    reader: Reader, services: Mapping[str, InferenceService], namespace: str
) -> dict[str, ServingRuntimeSpec]:
    """The specs of the runtimes that the services name, from their namespace before the cluster's."""
    runtimes = {}
    for service in services.values():
        model = service.spec.predictor.model
        if model is not None and model.runtime:
            local = reader.get(SERVING_RUNTIMES, model.runtime, namespace)
            runtime = local or reader.get(CLUSTER_SERVING_RUNTIMES, model.runtime)
            if runtime is not None:
                runtimes[model.runtime] = read_other(ServingRuntime, runtime).spec
    return runtimes

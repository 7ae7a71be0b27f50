"""Gathers what a graph's plan is made from, once; from memory, but for Knative's own settings."""

from __future__ import annotations

from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, INFERENCE_GRAPHS, INFERENCE_SERVICES, SERVING_RUNTIMES
from isvc.controllers.inferencegraph.plan import Observed
from isvc.controllers.inferencegraph.resolve import service_names
from isvc.kube.objects import Key, Object, dig
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving import knative
from isvc.serving.config import Config
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.toolkit.cache import Reader
from isvc.toolkit.remembered import Remembered


async def observe(reader: Reader, settings: Remembered, config: Config, key: Key, now: str) -> Observed | None:
    graph = reader.get(INFERENCE_GRAPHS, key.name, key.namespace)
    if graph is None:
        return None
    found = {name: reader.get(INFERENCE_SERVICES, name, key.namespace) for name in service_names(graph)}
    services = {name: service for name, service in found.items() if service is not None}
    has_knative = reader.serves(KNATIVE_SERVICES)
    scaling = None
    if has_knative:
        scaling = await settings.get(CONFIG_MAPS, knative.AUTOSCALER_CONFIG, knative.NAMESPACE)
    return Observed(
        graph=graph,
        config=config,
        services=services,
        runtimes=_runtimes(reader, services, key.namespace),
        has_knative=has_knative,
        zero_initial_scale=knative.zero_initial_scale_allowed(scaling),
        now=now,
    )


def _runtimes(reader: Reader, services: dict[str, Object], namespace: str) -> dict[str, Object]:
    """The specs of the runtimes that the services name, from their namespace before the cluster's."""
    runtimes = {}
    for service in services.values():
        name = dig(service, "spec", "predictor", "model", "runtime")
        if name:
            local = reader.get(SERVING_RUNTIMES, name, namespace)
            runtime = local or reader.get(CLUSTER_SERVING_RUNTIMES, name)
            if runtime is not None:
                runtimes[name] = runtime.get("spec") or {}
    return runtimes

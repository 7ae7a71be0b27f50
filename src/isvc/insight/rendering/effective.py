"""What a service on a cluster runs with once everything is merged, and the source of each field.

An InferenceService is planned anew in a simulation, as if it had no children yet: the pod of its predictor is what the
service, its runtime and the configuration make together. An LLMInferenceService is merged from presets, the
configurations it refers to, and itself.
"""

from __future__ import annotations

from typing import Final

from isvc.api.resources import (
    CLUSTER_SERVING_RUNTIMES,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICES,
    SERVING_RUNTIMES,
)
from isvc.controllers.llmisvc.kind import make_kind
from isvc.engine.gatherer import Gatherer
from isvc.insight.rendering.live import load_cluster
from isvc.insight.rendering.problems import unready
from isvc.insight.rendering.sources import Field, Layer, fields
from isvc.insight.simulation.kinds import KINDS
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.objects import Key, Object, dig, last_applied, namespace_of, uid_of
from isvc.kube.resource import DEPLOYMENTS, Resource
from isvc.programs.options import Options
from isvc.serving.containers import MODEL_SERVER
from isvc.serving.refused import Refused
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.serving.workload.deployment import CONTAINER_DEFAULTS, POD_DEFAULTS, PROBE_DEFAULTS
from isvc.toolkit.cache import OWNER
from isvc.toolkit.client import Client

SERVICE, CONFIG, DEFAULT, CONTROLLER = "service", "config", "default", "controller"
MERGED: Final = (INFERENCE_SERVICES, LLM_INFERENCE_SERVICES)
"""The kinds whose objects run with more than they say themselves."""
_PREDICTOR: Final = "predictor"


async def effective(client: Client, resource: Resource, service: Object, options: Options) -> list[Field]:
    """Raises `Refused` for a service that cannot be planned. The cluster is read, and not written to."""
    namespaces = frozenset({namespace_of(service)})
    simulation = (await load_cluster(client, options, namespaces=namespaces)).simulation
    if resource == LLM_INFERENCE_SERVICES:
        return await effective_llm(simulation, service)
    return await _predictor(simulation, resource, service)


# -- InferenceServices ----------------------------------------------------------------------------------------------


async def _predictor(simulation: Simulation, resource: Resource, service: Object) -> list[Field]:
    _forget_children(simulation, service)
    simulation.enqueue(resource, service)
    await simulation.settle()
    key = Key.of(service)
    planned = [
        manifest
        for (kind, namespace, _), manifest in simulation.server.written.items()
        if kind in (DEPLOYMENTS, KNATIVE_SERVICES) and namespace == key.namespace and _is_predictors(manifest, service)
    ]
    if not planned:
        raise Refused(unready(simulation, resource, service) or f"{key} is stopped")
    pod: Object = dig(planned[0], "spec", "template", "spec") or {}
    live = simulation.objects.get(resource, key.name, key.namespace) or service
    layers = [*_layers_of_service(live), *_layers_of_runtime(simulation, live)]
    return [_with_default(field) for field in fields(pod, layers, CONTROLLER)]


def _forget_children(simulation: Simulation, service: Object) -> None:
    for kind in KINDS:
        for key in list(simulation.objects.keys(kind, OWNER, uid_of(service))):
            simulation.objects.remove(kind, key.name, key.namespace)
            simulation.server.missed[kind, key.namespace, key.name] = None


def _is_predictors(manifest: Object, service: Object) -> bool:
    labels = dig(manifest, "spec", "template", "metadata", "labels") or {}
    owned = any(each.get("uid") == uid_of(service) for each in manifest["metadata"].get("ownerReferences") or ())
    return owned and labels.get("component") in (_PREDICTOR, None)


def _layers_of_service(service: Object) -> list[Layer]:
    """Returns what its author wrote, where that is on record, and what admission added from the configuration."""
    whole = _as_pod(dig(service, "spec", _PREDICTOR) or {})
    written = last_applied(service)
    if written is None:
        return [Layer(SERVICE, whole)]
    return [Layer(SERVICE, _as_pod(dig(written, "spec", _PREDICTOR) or {})), Layer(CONFIG, whole)]


def _as_pod(predictor: Object) -> Object:
    """Returns a predictor as the pod that it says, its model as the container that serves it."""
    model = predictor.get("model")
    own = [{**model, "name": MODEL_SERVER}] if isinstance(model, dict) else []
    return {**predictor, "containers": [*own, *(predictor.get("containers") or ())]}


def _layers_of_runtime(simulation: Simulation, service: Object) -> list[Layer]:
    status, namespace = service.get("status") or {}, namespace_of(service)
    for field, kind in (
        ("servingRuntimeName", SERVING_RUNTIMES),
        ("clusterServingRuntimeName", CLUSTER_SERVING_RUNTIMES),
    ):
        if name := status.get(field):
            runtime = simulation.objects.get(kind, str(name), namespace)
            return [Layer(f"runtime {name}", (runtime or {}).get("spec") or {})]
    return []


#: What Kubernetes would fill in, and the controller says first.
_DEFAULTS: Final = {**POD_DEFAULTS, **CONTAINER_DEFAULTS, **PROBE_DEFAULTS}


def _with_default(field: Field) -> Field:
    last = field.path.rpartition(".")[2]
    is_default = field.source == CONTROLLER and last in _DEFAULTS and _DEFAULTS[last] == field.value
    return field._replace(source=DEFAULT) if is_default else field


# -- LLMInferenceServices -------------------------------------------------------------------------------------------


async def effective_llm(simulation: Simulation, service: Object) -> list[Field]:
    kind = make_kind(simulation.objects, simulation.options.environment)
    gatherer = Gatherer(simulation.client, simulation.clock)
    observed = await gatherer.observe(kind, service, gatherer.answers())
    if not observed.combination.is_planned:
        raise Refused(observed.combination.message)
    merged = observed.merged
    configs = [
        Layer(f"{'preset' if each.source == 'Preset' else 'config'} {each.name}", config.get("spec") or {})
        for each in reversed(merged.applied)
        if (config := simulation.objects.get(LLM_INFERENCE_SERVICE_CONFIGS, each.name, each.namespace)) is not None
    ]
    return list(fields(merged.raw, [Layer(SERVICE, service.get("spec") or {}), *configs], DEFAULT))

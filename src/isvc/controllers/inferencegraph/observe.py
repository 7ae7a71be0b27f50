"""Reads what a graph is planned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from isvc.api import InferenceService
from isvc.api.completion import read, read_other
from isvc.api.defaults.inferenceservice import default_stored
from isvc.api.inferencegraph import InferenceGraph, InferenceGraphSpec
from isvc.api.modes import DeploymentMode, mode_of
from isvc.api.resources import CLUSTER_SERVING_RUNTIMES, INFERENCE_SERVICES, LLM_INFERENCE_SERVICES, SERVING_RUNTIMES
from isvc.api.servingruntime import ServingRuntime, ServingRuntimeSpec
from isvc.controllers.inferencegraph.resolve import service_names
from isvc.engine import kind as engine
from isvc.engine.needs import Answers, Stored
from isvc.kube.objects import Object, annotations_of, dig, namespace_of
from isvc.serving import hosts
from isvc.serving.config import Config
from isvc.serving.config.current import Configuration
from isvc.serving.environment import Environment
from isvc.serving.knative_settings import allows_zero_initial_scale
from isvc.serving.shared_host import host_conflict
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.toolkit.cache import Reader


@dataclass(frozen=True)
class Observed(engine.Observed):
    """A graph (as stored, and its spec typed), and the services and runtimes that its steps lead to."""

    spec: InferenceGraphSpec
    config: Config
    services: Mapping[str, InferenceService]
    runtimes: Mapping[str, ServingRuntimeSpec]
    has_knative: bool
    knative_namespace: str
    host_conflict: str | None = None  # names an older service or graph that reports the same host

    @property
    def mode(self) -> DeploymentMode:
        recorded = str(self.status.get("deploymentMode") or "")
        return mode_of(annotations_of(self.raw), recorded, self.config.deploy.default_mode)

    def allows_zero_initial_scale(self) -> bool:
        return allows_zero_initial_scale(self.answers, self.knative_namespace)

    def llm_service(self, name: str) -> Object | None:
        """Returns an LLMInferenceService of the graph's namespace; few graphs have any, so they are not watched."""
        return self.answers[Stored(LLM_INFERENCE_SERVICES, name, self.namespace)]

    @property
    def leads_to_llms(self) -> bool:
        """Returns whether a step names a service that is no InferenceService."""
        return any(name not in self.services for name in service_names(self.spec))

    @property
    def url(self) -> str:
        """Where a graph that runs as a Deployment is reached."""
        return f"http://{hosts.public_place(self.name, self.raw, self.config.ingress)}"


class Observer:
    def __init__(self, reader: Reader, environment: Environment) -> None:
        self._reader, self._environment = reader, environment
        self._configuration = Configuration(reader, environment.system_namespace)

    def observe(self, raw: Object, answers: Answers, now: str) -> Observed:
        config = self._configuration.required(is_new=not dig(raw, "status", "deploymentMode"))
        reader, namespace = self._reader, namespace_of(raw)
        raw, graph = read(InferenceGraph, raw)
        found = {name: reader.get(INFERENCE_SERVICES, name, namespace) for name in service_names(graph.spec)}
        services = {
            name: read_other(InferenceService, default_stored(service))
            for name, service in found.items()
            if service is not None
        }
        return Observed(
            raw,
            spec=graph.spec,
            config=config,
            services=services,
            runtimes=_runtimes(reader, services, namespace),
            has_knative=reader.serves(KNATIVE_SERVICES),
            knative_namespace=self._environment.knative_namespace,
            host_conflict=host_conflict(raw, reader),
            answers=answers,
            now=now,
        )


def _runtimes(
    reader: Reader, services: Mapping[str, InferenceService], namespace: str
) -> dict[str, ServingRuntimeSpec]:
    """Returns the specs of the runtimes that the services name, from their namespace before the cluster's."""
    runtimes = {}
    for service in services.values():
        model = service.spec.predictor.model
        if model is not None and model.runtime:
            local = reader.get(SERVING_RUNTIMES, model.runtime, namespace)
            runtime = local or reader.get(CLUSTER_SERVING_RUNTIMES, model.runtime)
            if runtime is not None:
                runtimes[model.runtime] = read_other(ServingRuntime, runtime).spec
    return runtimes

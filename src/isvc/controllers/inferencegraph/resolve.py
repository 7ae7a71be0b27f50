"""The services that a graph calls: their names become addresses before the router gets the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from isvc.api.inferencegraph import InferenceGraphSpec, InferenceStep
from isvc.api.inferenceservice import InferenceService
from isvc.api.servingruntime import ServingRuntimeSpec
from isvc.kube.objects import Object
from isvc.serving.endpoints import NoEndpoint, llm_endpoint, predictor_endpoint


@dataclass(frozen=True, slots=True)
class Resolved:
    """A graph's spec with the address of every named service, and which of those are LLMInferenceServices.

    An LLM answers below several paths, so the router adds the one that it was asked for.
    """

    spec: InferenceGraphSpec
    llms: frozenset[str]


def service_names(spec: InferenceGraphSpec) -> Iterator[str]:
    """Yields the services that steps name."""
    for router in spec.nodes.values():
        for step in router.steps:
            if step.service_name:
                yield step.service_name


def resolve(
    spec: InferenceGraphSpec,
    service_of: Callable[[str], InferenceService | None],
    runtime_of: Callable[[str], ServingRuntimeSpec | None],
    llm_of: Callable[[str], Object | None],
) -> Resolved:
    """Finds the services by their names; an InferenceService comes before an LLMInferenceService of the same name.

    Raises `NoEndpoint` while one is missing or not ready.
    """
    llms: set[str] = set()

    def with_url(step: InferenceStep) -> InferenceStep:
        if not step.service_name:
            return step
        service = service_of(step.service_name)
        if service is None:
            llm = llm_of(step.service_name)
            if llm is None:
                missing = f"InferenceService {step.service_name} does not exist"
                raise NoEndpoint(missing, "create it, or take it out of the graph")
            llms.add(step.service_name)
            return msgspec.structs.replace(step, service_url=llm_endpoint(llm))
        if step.service_url:
            return step
        return msgspec.structs.replace(step, service_url=predictor_endpoint(service, runtime_of))

    nodes = {
        name: msgspec.structs.replace(router, steps=[with_url(step) for step in router.steps])
        for name, router in spec.nodes.items()
    }
    return Resolved(msgspec.structs.replace(spec, nodes=nodes), frozenset(llms))

"""The services that a graph calls: their names become addresses before the router gets the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from isvc.api.inferencegraph import InferenceGraphSpec, InferenceStep
from isvc.api.inferenceservice import InferenceService
from isvc.api.servingruntime import ServingRuntimeSpec
from isvc.serving.endpoints import NoEndpoint, predictor_endpoint


def service_names(spec: InferenceGraphSpec) -> Iterator[str]:
    """Yields the InferenceServices that steps name."""
    for router in spec.nodes.values():
        for step in router.steps:
            if step.service_name:
                yield step.service_name


def resolve(
    spec: InferenceGraphSpec,
    service_of: Callable[[str], InferenceService | None],
    runtime_of: Callable[[str], ServingRuntimeSpec | None],
) -> InferenceGraphSpec:
    """Returns the graph's spec with the address of every named service.

    Raises `NoEndpoint` while one is missing or not ready.
    """

    def with_url(step: InferenceStep) -> InferenceStep:
        if not step.service_name:
            return step
        service = service_of(step.service_name)
        if service is None:
            raise NoEndpoint(f"InferenceService {step.service_name} does not exist")
        if step.service_url:
            return step
        return msgspec.structs.replace(step, service_url=predictor_endpoint(service, runtime_of))

    nodes = {
        name: msgspec.structs.replace(router, steps=[with_url(step) for step in router.steps])
        for name, router in spec.nodes.items()
    }
    return msgspec.structs.replace(spec, nodes=nodes)

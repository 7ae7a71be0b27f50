"""The services that a graph calls: names become addresses before the router is told the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from isvc.kube.objects import Object
from isvc.serving.endpoints import NoEndpoint, predictor_endpoint


def service_names(graph: Object) -> Iterator[str]:
    """The InferenceServices that steps name."""
    for router in (graph.get("spec", {}).get("nodes") or {}).values():
        for step in router.get("steps") or []:
            if step.get("serviceName"):
                yield step["serviceName"]


def resolved(
    spec: Object, service_of: Callable[[str], Object | None], runtime_of: Callable[[str], Object | None]
) -> Object:
    """The graph's spec with the address of every named service; `NoEndpoint` while one is missing or not ready."""

    def step_with_url(step: Object) -> Object:
        name = step.get("serviceName")
        if not name:
            return step
        service = service_of(name)
        if service is None:
            raise NoEndpoint(f"service {name} does not exist")
        return step if step.get("serviceUrl") else {**step, "serviceUrl": predictor_endpoint(service, runtime_of)}

    nodes = {
        name: {**router, "steps": [step_with_url(step) for step in router.get("steps") or []]}
        for name, router in (spec.get("nodes") or {}).items()
    }
    return {**spec, "nodes": nodes}

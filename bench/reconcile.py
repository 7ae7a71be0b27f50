"""Work of one reconcile that finds nothing to do, for both kinds of services, on an API server in memory.

CPU is the best of several rounds over all services, which is near to what the code takes when nothing else runs.
Bytecodes are exact on the busiest machine, but say nothing about what libraries in C do. `first` is a manager that has
just started and has to compare every child.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from isvc.insight.rendering.renderer import Cluster
from isvc.insight.simulation.kinds import resource_of
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.objects import Key, Object
from isvc.programs.options import Options
from isvc.toolkit.controller import Controller

SERVICES = 50
ROUNDS = 10


def inference_service(number: int) -> Object:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": f"s3://models/{number}"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": f"model-{number}", "namespace": f"team-{number % 10}"},
        "spec": {"predictor": {"minReplicas": 1, "maxReplicas": 3, "model": model}},
    }


def llm_inference_service(number: int) -> Object:
    return {
        "apiVersion": "serving.kserve.io/v1alpha2",
        "kind": "LLMInferenceService",
        "metadata": {"name": f"model-{number}", "namespace": f"team-{number % 10}"},
        "spec": {
            "model": {"uri": f"hf://lab/model-{number}", "name": f"lab/model-{number}"},
            "replicas": 2,
            "router": {"route": {}, "gateway": {}, "scheduler": {}},
        },
    }


async def measure(controller: str, make: Callable[[int], Object]) -> None:
    simulation, services = await _settled(make)
    reconciled = next(each for each in simulation.controllers if each.name == controller)
    first = min([await _round(reconciled, services, restarted=True) for _ in range(ROUNDS)])
    later = min([await _round(reconciled, services, restarted=False) for _ in range(ROUNDS)])
    print(f"{controller:20} {1000 * later:6.2f} ms a reconcile, {1000 * first:6.2f} ms the first", flush=True)
    steps = [await _bytecodes(reconciled, services[0], restarted=restarted) for restarted in (False, True)]
    print(f"{'':20} {steps[0]:6} bytecodes, {steps[1]:6} the first", flush=True)


async def _settled(make: Callable[[int], Object]) -> tuple[Simulation, list[Key]]:
    """A cluster on which all services are ready."""
    cluster = Cluster(Options())
    cluster.install([], [], mode="Standard")
    simulation, services = cluster.simulation, [make(number) for number in range(SERVICES)]
    for service in services:
        resource = resource_of(service)
        assert resource is not None
        await simulation.apply(resource, service)
    await simulation.settle_ready()
    assert not simulation.crashes, simulation.crashes[0]
    return simulation, [Key.of(service) for service in services]


async def _round(controller: Controller, services: list[Key], *, restarted: bool) -> float:
    """Seconds of CPU for each service."""
    if restarted:
        _forget(controller)
    began = time.process_time()
    for key in services:
        await controller.reconcile(key)
    return (time.process_time() - began) / len(services)


async def _bytecodes(controller: Controller, service: Key, *, restarted: bool) -> int:
    """How many bytecodes Python executes for a service."""
    if restarted:
        _forget(controller)
    executed = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal executed
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        executed += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        await controller.reconcile(service)
    finally:
        sys.settrace(None)
    return executed


def _forget(controller: Controller) -> None:
    controller.reconcile.__self__._engine._seen.clear()  # type: ignore[attr-defined]


async def main() -> None:
    await measure("inferenceservice", inference_service)
    await measure("llminferenceservice", llm_inference_service)


if __name__ == "__main__":
    asyncio.run(main())

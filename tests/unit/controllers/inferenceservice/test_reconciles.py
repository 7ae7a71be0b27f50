"""How often a service is looked at until it is ready."""

from __future__ import annotations

from isvc.api.resources import INFERENCE_SERVICES
from isvc.insight.rendering.renderer import Cluster
from isvc.kube.objects import Key
from isvc.kube.readiness import is_ready
from isvc.programs.options import Options
from isvc.toolkit.controller import Result


async def test_a_new_service_in_standard_mode_does_not_ask_to_be_looked_at_again():
    cluster = Cluster(Options())
    cluster.install([], [], mode="Standard")
    simulation, results = cluster.simulation, list[Result | None]()
    controller = next(each for each in simulation.controllers if each.name == "inferenceservice")
    reconcile = controller.reconcile

    async def noting(key: Key) -> Result | None:
        results.append(await reconcile(key))
        return results[-1]

    controller.reconcile = noting
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "gs://a/b"}
    spec = {"metadata": {"name": "a", "namespace": "ns"}, "spec": {"predictor": {"model": model}}}
    await simulation.apply(INFERENCE_SERVICES, INFERENCE_SERVICES.typed(spec))
    await simulation.settle_ready()
    stored = simulation.objects.get(INFERENCE_SERVICES, "a", "ns")
    assert stored is not None
    assert is_ready(stored)
    assert len(results) >= 2
    assert all(result.lapses for result in results if result)

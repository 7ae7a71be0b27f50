"""The plan of an InferenceGraph."""

from __future__ import annotations

from isvc.api.codec import DecodeError
from isvc.controllers.inferencegraph.observe import observe
from isvc.controllers.inferencegraph.plan import plan
from isvc.engine.plan import Hold
from isvc.insight.diagnosis.finding import Finding
from isvc.insight.diagnosis.plans.intent import Intent, configuration, invalid, unconfigured
from isvc.insight.diagnosis.snapshot import Snapshot
from isvc.kube.objects import Key, Object
from isvc.serving.config.current import Configuration
from isvc.serving.knative_settings import KnativeSettings
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock, timestamp

_REMEDIES = {
    "ServerlessModeRejected": "install Knative Serving, or create the graph anew in Standard mode",
    "ServiceNotReady": "ask isvc explain about that service",
}


async def intent(client: Client, snapshot: Snapshot, graph: Object) -> Intent:
    clock, reader = SystemClock(), snapshot.reader(())
    current = Configuration(reader, snapshot.system_namespace)
    config = current.in_force()
    if config is None:
        return unconfigured(snapshot, current.problem)
    try:
        knative = KnativeSettings(client, clock)
        observed = await observe(reader, knative, config, Key.of(graph), timestamp(clock.now()))
    except DecodeError as error:
        return invalid(str(error))
    if observed is None:
        return Intent()
    planned = plan(observed)
    held = next((part.answer for part in planned.parts if isinstance(part.answer, Hold)), None)
    problem = Finding(held.reason, held.message, _REMEDIES.get(held.reason, "")) if held else None
    return Intent.of(planned, problem, sources=(configuration(snapshot),))

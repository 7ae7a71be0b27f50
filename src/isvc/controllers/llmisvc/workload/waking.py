"""Services without pods whom a request wakes: the endpoint picker holds it, and KEDA sees the picker's queue.

`idleReplicaCount: 0` lets a workload have no pods, and that alone loses requests: an endpoint picker refuses what it
has no endpoint for. With its flow control it keeps them in a queue, whose length is a metric. What would lose requests
all the same is refused, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from isvc.api.annotations import WAKE_ON_REQUEST
from isvc.api.llm.scaling import ScalingSpec, WVASpec
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.workload.phases import Phase, phases
from isvc.kube import durations
from isvc.kube.objects import Object, annotations_of
from isvc.serving.llm import names
from isvc.serving.refused import Refused
from isvc.serving.workload.http_metric import COLD_START_SECONDS

_REASON: Final = "RequestsWouldBeLost"
_GATE: Final = "flowControl"
_QUEUE: Final = "llm_d_epp_flow_control_queue_size"
_RUNNING: Final = "llm_d_epp_average_running_requests"
_ONLY_WAKES: Final = "1000000"  # requests for each replica: others decide how many there are


def wakes_on_request(observed: Observed) -> bool:
    return annotations_of(observed.raw).get(WAKE_ON_REQUEST, "").lower() == "true"


def check_wakes(observed: Observed) -> None:
    """Raises `Refused` for what would lose requests while there is no pod."""
    problem = next(_problems(observed), None)
    if problem is not None:
        raise Refused(f"{WAKE_ON_REQUEST}: {problem}", reason=_REASON)


def _problems(observed: Observed) -> Iterator[str]:
    scheduler = observed.scheduler
    if scheduler is None or scheduler.template is None or observed.users_pool:
        yield "requests wait in the endpoint picker, so spec.router.scheduler has to be there, with a pool of its own"
        return
    for phase in phases(observed):
        if _idle_replicas(phase) != 0:
            what = "prefill and decode sleep together" if observed.spec.prefill is not None else "nothing sleeps"
            yield f"{what}: the {phase.name} workload needs idleReplicaCount: 0 in scaling.keda or scaling.wva.keda"
    for timeout in _timeouts(observed):
        if 0 < (durations.seconds(timeout) or 0) < COLD_START_SECONDS:
            yield f"the route ends requests after {timeout}: give it 0s, or {COLD_START_SECONDS}s and more"


def _idle_replicas(phase: Phase) -> int | None:
    scaling = phase.spec.scaling or ScalingSpec()
    settings = scaling.keda or (scaling.wva or WVASpec()).keda
    return None if settings is None else settings.idle_replica_count


def _timeouts(observed: Observed) -> Iterator[str]:
    route = observed.route.http.spec if observed.route and observed.route.http else None
    for rule in (route or {}).get("rules") or ():
        yield from (str(each) for each in (rule.get("timeouts") or {}).values() if each)


def hold_requests(config: Object) -> None:
    """Switches flow control on in the configuration of an endpoint picker, in place."""
    gates = config.get("featureGates") or []
    if _GATE not in gates:
        config["featureGates"] = [*gates, _GATE]
    settings = config.setdefault("flowControl", {})
    settings.setdefault("defaultRequestTTL", f"{COLD_START_SECONDS}s")


def ask_always(pool: Object) -> Object:
    """Returns a pool whose gateway sends no request past an endpoint picker that is away, as FailOpen would."""
    picker = pool.get("endpointPickerRef") or {}
    return {**pool, "endpointPickerRef": {**picker, "failureMode": "FailClose"}}


def waking_trigger(observed: Observed, prometheus: Object) -> Object:
    """Returns the trigger that is active while a request waits or runs. `prometheus` says where to ask, and as whom."""
    pool, namespace = names.inference_pool(observed.name), observed.namespace
    waiting = f'{_QUEUE}{{inference_pool="{pool}",namespace="{namespace}"}}'
    running = f'{_RUNNING}{{name="{pool}",namespace="{namespace}"}}'
    metadata = {
        **prometheus["metadata"],
        "query": f"sum({waiting} or vector(0)) + sum({running} or vector(0))",
        "threshold": _ONLY_WAKES,
        "activationThreshold": "0",
    }
    return {**prometheus, "name": "waiting-requests", "metadata": metadata}

"""The kubelet's `/stats/summary`: what the containers of a node use, from which the API server makes PodMetrics."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime

from isvc.kube.objects import Object, dig, name_of, namespace_of, uid_of
from isvc.local.node.pods.pod import PodWorker
from isvc.local.node.processes.usage import PERIOD, Usage, UsageMeter
from isvc.wire.turns import room_in_turn


async def summary(node: str, workers: Iterable[PodWorker], meter: UsageMeter) -> Object:
    """Lists pods of which every running container has been measured; those that are simulated use nothing."""
    meter.look()
    machine = meter.of_machine()
    nothing = _figures(Usage(0.0, 0, PERIOD, time.time()))
    pods = []
    for worker in tuple(workers):
        await room_in_turn()  # there may be thousands
        if (pod := _pod(worker, meter, nothing)) is not None:
            pods.append(pod)
    return {"node": {"nodeName": node, **(_figures(machine) if machine else {})}, "pods": pods}


def _pod(worker: PodWorker, meter: UsageMeter, nothing: Object) -> Object | None:
    pod = worker.pod
    reference = {"name": name_of(pod), "namespace": namespace_of(pod), "uid": uid_of(pod)}
    if worker.is_pretended and dig(pod, "status", "phase") == "Running":
        return {
            "podRef": reference,
            "containers": [{"name": each["name"], **nothing} for each in pod["spec"]["containers"]],
        }
    running = [(container.name, meter.of(container.pid)) for container in worker.containers if container.pid]
    containers = [{"name": name, **_figures(usage)} for name, usage in running if usage is not None]
    if not containers or len(containers) < len(running):
        return None
    return {"podRef": reference, "containers": containers}


def _figures(usage: Usage) -> Object:
    """Returns figures with the window of the rate, which a kubelet leaves to whoever asks."""
    moment = datetime.fromtimestamp(usage.at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    cpu = {"time": moment, "usageNanoCores": int(usage.cores * 1e9), "windowSeconds": round(usage.window, 3)}
    return {"cpu": cpu, "memory": {"time": moment, "workingSetBytes": usage.memory}}

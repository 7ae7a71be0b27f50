"""The columns of pods, whose status has to be worked out from their containers."""

from __future__ import annotations

from isvc.apiserver.tables.columns import AGE, NAME, NONE, Column, at, since, wide
from isvc.kube.objects import Object, dig


def _statuses(pod: Object) -> list[Object]:
    return dig(pod, "status", "containerStatuses") or []


def _ready(pod: Object) -> str:
    ready = sum(bool(each.get("ready")) for each in _statuses(pod))
    return f"{ready}/{len(dig(pod, 'spec', 'containers') or ())}"


def status(pod: Object) -> str:
    """One word for how a pod is: what waits or ended badly in it wins over its phase."""
    told = dig(pod, "status", "reason") or dig(pod, "status", "phase") or "Unknown"
    initializing = _initializing(pod)
    if initializing:
        told = initializing
    else:
        for each in reversed(_statuses(pod)):
            state = each.get("state") or {}
            if reason := dig(state, "waiting", "reason"):
                told = reason
            elif ended := state.get("terminated"):
                told = ended.get("reason") or _exit(ended)
        if told == "Completed" and any(each.get("ready") for each in _statuses(pod)):
            told = "Running" if _is_ready(pod) else "NotReady"
    if dig(pod, "metadata", "deletionTimestamp"):
        return "Unknown" if dig(pod, "status", "reason") == "NodeLost" else "Terminating"
    return str(told)


def _initializing(pod: Object) -> str:
    containers = dig(pod, "spec", "initContainers") or ()
    for index, each in enumerate(dig(pod, "status", "initContainerStatuses") or ()):
        state = each.get("state") or {}
        ended = state.get("terminated")
        if ended and ended.get("exitCode") == 0:
            continue
        if index < len(containers) and containers[index].get("restartPolicy") == "Always" and each.get("started"):
            continue
        if ended:
            return f"Init:{ended.get('reason') or _exit(ended)}"
        waiting = dig(state, "waiting", "reason")
        if waiting and waiting != "PodInitializing":
            return f"Init:{waiting}"
        return f"Init:{index}/{len(containers)}"
    return ""


def _exit(ended: Object) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _is_ready(pod: Object) -> bool:
    conditions = dig(pod, "status", "conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _restarts(pod: Object) -> str:
    count = sum(each.get("restartCount", 0) for each in _statuses(pod))
    ends = [dig(each, "lastState", "terminated", "finishedAt") for each in _statuses(pod)]
    last = max(filter(None, ends), default="")
    return f"{count} ({since(last)} ago)" if count and last else str(count)


def _gates(pod: Object) -> str:
    gates = dig(pod, "spec", "readinessGates") or ()
    if not gates:
        return NONE
    true = {each["type"] for each in dig(pod, "status", "conditions") or () if each["status"] == "True"}
    return f"{sum(gate['conditionType'] in true for gate in gates)}/{len(gates)}"


COLUMNS = [
    NAME,
    Column("Ready", _ready),
    Column("Status", status),
    Column("Restarts", _restarts),
    AGE,
    at("IP", "status", "podIP", default=NONE, wide=True),
    at("Node", "spec", "nodeName", default=NONE, wide=True),
    at("Nominated Node", "status", "nominatedNodeName", default=NONE, wide=True),
    wide("Readiness Gates", _gates),
]

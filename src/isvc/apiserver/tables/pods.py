"""The columns of pods, whose status has to be worked out from their containers."""

from __future__ import annotations

from isvc.apiserver.tables.columns import AGE, NAME, NONE, Column, at, since, wide
from isvc.kube.conditions import is_condition_true
from isvc.kube.objects import Object, dig, is_being_deleted


def _statuses(pod: Object) -> list[Object]:
    return dig(pod, "status", "containerStatuses") or []


def _sidecars(pod: Object) -> list[Object]:
    """Returns init containers that run beside the others, by their statuses where there are any yet."""
    specs = dig(pod, "spec", "initContainers") or ()
    statuses = {each["name"]: each for each in dig(pod, "status", "initContainerStatuses") or ()}
    return [statuses.get(each["name"], {}) for each in specs if each.get("restartPolicy") == "Always"]


def _ready(pod: Object) -> str:
    beside = _sidecars(pod)
    ready = sum(bool(each.get("ready")) for each in (*beside, *_statuses(pod)))
    return f"{ready}/{len(beside) + len(dig(pod, 'spec', 'containers') or ())}"


def status(pod: Object) -> str:
    """Says in one word how a pod is: what waits or ended badly in it wins over its phase."""
    phase = dig(pod, "status", "phase") or "Unknown"
    if is_being_deleted(pod) and phase not in ("Succeeded", "Failed"):
        return "Unknown" if dig(pod, "status", "reason") == "NodeLost" else "Terminating"
    return _initialization_reason(pod) or _main(pod, str(dig(pod, "status", "reason") or phase))


def _main(pod: Object, word: str) -> str:
    """Returns what the containers say, the first of them last; a pod that goes on serving is not completed."""
    failure = ""
    for each in reversed(_statuses(pod)):
        state = each.get("state") or {}
        if reason := dig(state, "waiting", "reason"):
            word = reason
        elif ended := state.get("terminated"):
            word = ended.get("reason") or _exit(ended)
            failure = word if ended.get("exitCode") else failure
    if word != "Completed":
        return word
    serves = any(each.get("ready") for each in _statuses(pod))
    if serves and is_condition_true(pod, "Ready"):
        return "Running"
    return failure or ("NotReady" if serves else word)


def _initialization_reason(pod: Object) -> str:
    if is_condition_true(pod, "Initialized"):
        return ""
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


def _restarts(pod: Object) -> str:
    initializing = _initialization_reason(pod)
    counted = dig(pod, "status", "initContainerStatuses") if initializing else [*_sidecars(pod), *_statuses(pod)]
    count = sum(each.get("restartCount", 0) for each in counted)
    ends = [dig(each, "lastState", "terminated", "finishedAt") for each in counted]
    last = max(filter(None, ends), default="")
    return f"{count} ({since(last)} ago)" if count and last else str(count)


def _gates(pod: Object) -> str:
    gates = dig(pod, "spec", "readinessGates") or ()
    if not gates:
        return NONE
    return f"{sum(is_condition_true(pod, gate['conditionType']) for gate in gates)}/{len(gates)}"


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

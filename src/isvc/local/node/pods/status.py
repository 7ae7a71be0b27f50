"""A pod's status, computed from what its containers are doing. Words are the kubelet's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isvc.kube.conditions import FALSE, TRUE, conditions_of, find, stamp
from isvc.kube.objects import Object, dig
from isvc.local.node.containers.state import ContainerState

HOST_IP = "127.0.0.1"


def pod_status(
    pod: Object,
    init: Sequence[ContainerState],
    containers: Sequence[ContainerState],
    started: str,
    now: str,
    ephemeral: Sequence[ContainerState] = (),
) -> Object:
    """Returns the whole status; condition times stay where nothing changed."""
    phase = phase_of(pod, init, containers)
    status: Object = {
        "phase": phase,
        "hostIP": HOST_IP,
        "hostIPs": [{"ip": HOST_IP}],
        "podIP": HOST_IP,
        "podIPs": [{"ip": HOST_IP}],
        "startTime": started,
        "qosClass": dig(pod, "status", "qosClass") or "BestEffort",
        "containerStatuses": [state.to_status() for state in containers],
    }
    if init:
        status["initContainerStatuses"] = [state.to_status() for state in init]
    if ephemeral:
        status["ephemeralContainerStatuses"] = [state.to_status() for state in ephemeral]
    status["conditions"] = _conditions(pod, init, containers, phase, now)
    return status


def _conditions(
    pod: Object, init: Sequence[ContainerState], containers: Sequence[ContainerState], phase: str, now: str
) -> list[Object]:
    sidecars = sidecars_of(pod)
    uninitialized = [state.name for state in init if not _is_past(state, sidecars)]
    initialized = not uninitialized or phase == "Succeeded"
    serving = [*(state for state in init if state.name in sidecars), *containers]
    unready = [state.name for state in serving if not state.ready]
    over = phase in ("Succeeded", "Failed")
    reason = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase, "ContainersNotReady")
    unready_message = "" if over else f"containers with unready status: [{' '.join(unready)}]"
    incomplete_message = f"containers with incomplete status: [{' '.join(uninitialized)}]"
    ready = initialized and not unready and not over
    why_not = ("", "") if ready else (reason, unready_message)
    before = conditions_of(pod)
    closed = [*_closed_gates(pod, before)] if ready else []
    gated = (False, "ReadinessGatesNotReady", ", ".join(closed)) if closed else (ready, *why_not)
    wanted = [
        ("PodReadyToStartContainers", not over, "", ""),
        ("Initialized", initialized, *(("", "") if initialized else ("ContainersNotInitialized", incomplete_message))),
        ("Ready", *gated),
        ("ContainersReady", ready, *why_not),
        ("PodScheduled", True, "", ""),
    ]
    return [stamp(_condition(*each), before, now) for each in wanted]


def _closed_gates(pod: Object, conditions: Sequence[Object]) -> Iterator[str]:
    """Yields, in the words of the kubelet, why conditions that others write keep a pod from being ready."""
    for gate in dig(pod, "spec", "readinessGates") or ():
        kind = gate["conditionType"]
        condition = find(conditions, kind)
        if condition is None:
            yield f'corresponding condition of pod readiness gate "{kind}" does not exist.'
        elif condition.get("status") != TRUE:
            yield f'the status of pod readiness gate "{kind}" is not "True", but {condition.get("status")}'


def after_write(pod: Object, written: Object) -> Object:
    """Returns the pod as it is once a status was written, which keeps the conditions of others."""
    ours = {each["type"] for each in written["conditions"]}
    others = [each for each in conditions_of(pod) if each["type"] not in ours]
    return {**pod, "status": {**written, "conditions": [*written["conditions"], *others]}}


def patch_of(status: Object) -> Object:
    """Returns the status as a strategic merge patch, which takes reasons and messages away that are no more."""
    return {**status, "conditions": [{"reason": None, "message": None, **each} for each in status["conditions"]]}


def _condition(kind: str, ok: bool, reason: str, message: str) -> Object:
    said = {"reason": reason, "message": message}
    status = {"type": kind, "status": TRUE if ok else FALSE, "lastProbeTime": None}
    return {**status, **{name: text for name, text in said.items() if text}}


def sidecars_of(pod: Object) -> set[str]:
    """Returns init containers that run beside the others instead of before them."""
    return {spec["name"] for spec in dig(pod, "spec", "initContainers") or [] if spec.get("restartPolicy") == "Always"}


def _is_past(state: ContainerState, sidecars: set[str]) -> bool:
    """Returns whether an init container holds up the next: a sidecar only until its first start."""
    if state.name in sidecars:
        return bool(state.started or state.terminated or state.last_terminated)
    return state.has_succeeded


def phase_of(pod: Object, init: Sequence[ContainerState], containers: Sequence[ContainerState]) -> str:
    policy, sidecars = dig(pod, "spec", "restartPolicy") or "Always", sidecars_of(pod)
    if all(state.terminated for state in containers) and policy != "Always":
        if all(state.has_succeeded for state in containers):
            return "Succeeded"
        if policy == "Never":
            return "Failed"
    steps = [state for state in init if state.name not in sidecars]
    if policy == "Never" and any(state.terminated and not state.has_succeeded for state in steps):
        return "Failed"
    if not all(_is_past(state, sidecars) for state in init):
        return "Pending"
    begun = [state.running or state.terminated or state.last_terminated for state in containers]
    return "Running" if all(begun) else "Pending"

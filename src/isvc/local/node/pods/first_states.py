"""States of containers that no process decides: before a start, after the node was stopped, and with `--simulate`."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.kube.objects import Object, dig
from isvc.local.node.containers.state import ContainerState


def first_states(pod: Object, specs: str, statuses: str) -> list[ContainerState]:
    """Returns the states of a pod's containers; one that ran before the node was started again has one restart more."""
    before = {item["name"]: item for item in dig(pod, "status", statuses) or []}
    states = []
    for spec in dig(pod, "spec", specs) or []:
        state = ContainerState(spec["name"], spec.get("image", ""))
        earlier = before.get(spec["name"])
        if earlier and (earlier.get("containerID") or earlier.get("restartCount")):
            state.restarts = earlier.get("restartCount", 0) + (1 if specs == "containers" else 0)
            state.last_terminated = dig(earlier, "state", "terminated") or dig(earlier, "lastState", "terminated")
        states.append(state)
    return states


def is_lost(pod: Object) -> bool:
    """Returns whether a pod is to run once, and was running when the node ended."""
    before = dig(pod, "status", "containerStatuses") or []
    return dig(pod, "spec", "restartPolicy") == "Never" and any(item.get("containerID") for item in before)


def lose(pod: Object, init: Sequence[ContainerState], main: Sequence[ContainerState], now: str) -> None:
    """Ends the containers of a pod that is lost: as was reported last, or for a reason that nobody knows."""
    before = {item["name"]: item for item in dig(pod, "status", "containerStatuses") or []}
    for state in init:
        state.end({"exitCode": 0, "reason": "Completed"})
    for state in main:
        earlier = before.get(state.name) or {}
        state.restarts, state.last_terminated = earlier.get("restartCount", 0), None
        state.end(dig(earlier, "state", "terminated") or unknown_end(earlier.get("state") or {}, now))


def unknown_end(state: Object, now: str) -> Object:
    """Returns how a container ended that was in this state when the node did."""
    began = dig(state, "running", "startedAt") or now
    unknown = {"exitCode": 137, "reason": "ContainerStatusUnknown", "message": "isvc was stopped while it ran"}
    return {**unknown, "startedAt": began, "finishedAt": now}


def pretend(init: Sequence[ContainerState], main: Sequence[ContainerState], now: str) -> None:
    """Makes all containers seem started, with `isvc up --simulate` for images that have no program here."""
    for state in init:
        state.end({"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now})
    for state in main:
        state.run(now, 0)
        state.ready = state.started = True

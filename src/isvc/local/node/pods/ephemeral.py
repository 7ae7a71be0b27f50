"""Containers that `kubectl debug` adds to a pod: each runs once, beside the others, and never again.

One that cannot run ends at once with the reason in its state and in its log, which kubectl prints: `kubectl debug -it`
would wait as long as the container does.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from isvc.kube.objects import Object, dig, name_of, namespace_of, uid_of
from isvc.kube.resource import PODS
from isvc.kube.timestamps import timestamp
from isvc.local.node.containers.container import Container
from isvc.local.node.containers.launch import PodContext
from isvc.local.node.containers.state import ContainerState
from isvc.local.node.pods.first_states import unknown_end
from isvc.local.node.processes.logs import Log, log_file
from isvc.local.node.programs.images import ImageTableError, UnknownImage
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock

NONE_RUNS = "nothing can be added to this pod, none of whose containers run"


class EphemeralContainers:
    """Those of one pod. Their states are in the order in which they were added."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.states: list[ContainerState] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._folder = folder
        self._clock = clock
        self._waiting: list[tuple[Object, ContainerState]] = []

    def add(self, pod: Object) -> bool:
        """Takes note of those that are new; whether there are any. What ran before the node was started has ended."""
        known = {state.name for state in self.states}
        before = {each["name"]: each for each in dig(pod, "status", "ephemeralContainerStatuses") or ()}
        new = [spec for spec in dig(pod, "spec", "ephemeralContainers") or () if spec["name"] not in known]
        for spec in new:
            state = ContainerState(spec["name"], spec.get("image", ""))
            self.states.append(state)
            earlier = dig(before.get(spec["name"]) or {}, "state") or {}
            if "running" in earlier or "terminated" in earlier:
                state.end(earlier.get("terminated") or unknown_end(earlier, self._now()))
            else:
                self._waiting.append((spec, state))
        return bool(new)

    def waiting_states(self) -> list[ContainerState]:
        return [state for _, state in self._waiting]

    def start(self, context: PodContext) -> list[Container]:
        """Runs those that wait."""
        started = []
        for spec, state in self._take():
            try:
                context.node.images.get(state.image)
            except (UnknownImage, ImageTableError, OSError) as error:
                self._end(state, str(error))
            else:
                container = Container(spec, state, context)
                self.tasks.append(asyncio.create_task(container.run("Never")))
                started.append(container)
        return started

    def refuse(self, why: str) -> None:
        """Ends those that wait without having run them."""
        for _, state in self._take():
            self._end(state, why)

    def _take(self) -> list[tuple[Object, ContainerState]]:
        taken, self._waiting = self._waiting, []
        return taken

    def _end(self, state: ContainerState, why: str) -> None:
        log = Log(log_file(self._folder, state.name, 0))
        log.note(why)
        log.close()
        now = self._now()
        state.end({"exitCode": 128, "reason": "StartError", "message": why, "startedAt": now, "finishedAt": now})

    def _now(self) -> str:
        return timestamp(self._clock.now())


async def refuse_in_ended(pod: Object, folder: Path, client: Client, clock: Clock) -> None:
    """Ends those that were added to a pod that had ended before the node was started, and has no worker."""
    added = EphemeralContainers(folder, clock)
    added.add(pod)
    if not added.waiting_states():
        return
    added.refuse(NONE_RUNS)
    status = {"ephemeralContainerStatuses": [state.to_status() for state in added.states]}
    patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
    await client.patch(PODS, name_of(pod), patch, namespace_of(pod), subresource="status")

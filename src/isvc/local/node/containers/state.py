"""What a container is doing and how it ended before, as its part of the pod's status."""

from __future__ import annotations

from dataclasses import dataclass, field

from isvc.kube.objects import Object


@dataclass(slots=True)
class ContainerState:
    """What a container is doing now and what ended before."""

    name: str
    image: str
    waiting: Object | None = field(default_factory=lambda: {"reason": "PodInitializing"})
    running: Object | None = None
    terminated: Object | None = None
    last_terminated: Object | None = None
    restarts: int = 0
    ready: bool = False
    started: bool = False
    process_id: int = 0

    def wait(self, reason: str, message: str = "") -> None:
        self.waiting = {"reason": reason, "message": message} if message else {"reason": reason}
        if self.terminated is not None:
            self.last_terminated = self.terminated
        self.running = self.terminated = None
        self.ready = self.started = False

    def run(self, at: str, process_id: int) -> None:
        if self.terminated is not None:
            self.last_terminated = self.terminated
        self.waiting = self.terminated = None
        self.running = {"startedAt": at}
        self.process_id = process_id

    def end(self, terminated: Object) -> None:
        self.waiting = self.running = None
        self.terminated = terminated
        self.ready = self.started = False

    @property
    def has_succeeded(self) -> bool:
        return self.terminated is not None and self.terminated.get("exitCode") == 0

    def to_status(self) -> Object:
        state: Object = {}
        for key in ("waiting", "running", "terminated"):
            if value := getattr(self, key):
                state[key] = value
        return {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "containerID": f"process://{self.process_id}" if self.process_id else "",
            "state": state,
            "lastState": {"terminated": self.last_terminated} if self.last_terminated else {},
            "restartCount": self.restarts,
            "ready": self.ready,
            "started": self.started,
        }

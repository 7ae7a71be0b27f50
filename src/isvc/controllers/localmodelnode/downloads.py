"""Downloads as the cluster shows them: Jobs of this node and their pods, ours and KServe's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from isvc.controllers.localmodelnode.disk import MODELS, incoming_path
from isvc.kube.conditions import condition_of, is_condition_true
from isvc.kube.objects import Object, annotations_of, dig, is_being_deleted, name_of
from isvc.kube.owners import controller_of
from isvc.kube.pods import is_terminal
from isvc.kube.timestamps import seconds_between

ATTEMPT: Final = "isvc.dev/attempt"
VOLUME: Final = "kserve-pvc-source"
NO_SPACE: Final = 7
"""The exit status by which our storage initializer says that a disk is too small."""


@dataclass(frozen=True, slots=True)
class Download:
    """A Job of this node: the model that it brings, and whether into its final place, as KServe's do."""

    job: Object
    key: str
    in_place: bool
    pods: tuple[Object, ...] = ()

    @property
    def name(self) -> str:
        return name_of(self.job)

    @property
    def succeeded(self) -> bool:
        return is_condition_true(self.job, "Complete")

    @property
    def failed(self) -> bool:
        return is_condition_true(self.job, "Failed")

    @property
    def is_under_way(self) -> bool:
        return not self.succeeded and not self.failed and not is_being_deleted(self.job)

    @property
    def is_running(self) -> bool:
        running = any(dig(pod, "status", "phase") == "Running" for pod in self.pods)
        return running or bool(dig(self.job, "status", "ready"))

    @property
    def attempt(self) -> int:
        written = annotations_of(self.job).get(ATTEMPT, "")
        return int(written) if written.isdecimal() else 1

    def seconds(self, now: str) -> float | None:
        """Returns how long it has taken, or how long it took."""
        begin = dig(self.job, "status", "startTime")
        return max(seconds_between(begin, self._ended_at or now), 0.0) if begin else None

    def seconds_since_end(self, now: str) -> float:
        return max(seconds_between(self._ended_at, now), 0.0) if self._ended_at else 0.0

    @property
    def error(self) -> str:
        """Why it failed, or what it waits for, in the words of the storage initializer where there are any."""
        said = [text for pod in self.pods if (text := _last_words(pod))]
        return said[-1] if said else str(self._failure.get("message") or "")

    @property
    def ran_out_of_space(self) -> bool:
        return any(each.get("exitCode") == NO_SPACE for pod in self.pods for each in _terminations(pod))

    @property
    def _failure(self) -> Object:
        return condition_of(self.job, "Failed") if self.failed else {}

    @property
    def _ended_at(self) -> str:
        return str(dig(self.job, "status", "completionTime") or self._failure.get("lastTransitionTime") or "")


def downloads_of(jobs: Iterable[Object], pods: Sequence[Object]) -> tuple[Download, ...]:
    """Returns Jobs that download models, the oldest first."""
    found = []
    for job in jobs:
        target = _target(dig(job, "spec", "template", "spec") or {})
        if target is not None:
            own = tuple(pod for pod in pods if (controller_of(pod) or {}).get("uid") == job["metadata"].get("uid"))
            found.append(Download(job, *target, own))
    return tuple(sorted(found, key=lambda each: (each.attempt, each.job["metadata"].get("creationTimestamp", ""))))


def keys_in_use(pods: Iterable[Object]) -> frozenset[str]:
    """Returns the models into whose downloads a pod may still write, whatever became of its Job."""
    alive = (pod for pod in pods if not is_terminal(pod))
    targets = (_target(pod.get("spec") or {}) for pod in alive)
    return frozenset(target[0] for target in targets if target is not None)


def _target(pod_spec: Object) -> tuple[str, bool] | None:
    """Returns which model a pod downloads, by the folder that it mounts."""
    for container in pod_spec.get("containers") or ():
        for mount in container.get("volumeMounts") or ():
            if mount.get("name") != VOLUME:
                continue
            parts = str(mount.get("subPath") or "").split("/")
            if len(parts) == 2 and parts[0] == MODELS:
                return parts[1], True
            if len(parts) > 2 and mount["subPath"] == incoming_path(parts[2]):
                return parts[2], False
    return None


def _terminations(pod: Object) -> list[Object]:
    statuses = dig(pod, "status", "containerStatuses") or ()
    return [ended for each in statuses if (ended := dig(each, "state", "terminated"))]


def _last_words(pod: Object) -> str:
    for ended in _terminations(pod):
        if ended.get("exitCode"):
            reason = f"{ended.get('reason') or 'Error'}, exit status {ended['exitCode']}"
            return str(ended.get("message") or "").strip() or reason
    for each in dig(pod, "status", "containerStatuses") or ():
        waiting = dig(each, "state", "waiting") or {}
        if waiting.get("message"):
            return f"{waiting.get('reason')}: {waiting['message']}"
    if dig(pod, "status", "phase") == "Failed":
        return str(dig(pod, "status", "message") or dig(pod, "status", "reason") or "")
    scheduled = condition_of(pod, "PodScheduled")
    return str(scheduled.get("message") or "") if scheduled.get("status") == "False" else ""

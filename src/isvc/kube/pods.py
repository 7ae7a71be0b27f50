"""Pods: how many there are to be, whether they have ended or fail, and the ports that probes and Services may name."""

from __future__ import annotations

from typing import Final

from isvc.kube.objects import Object, dig

_FAILURES: Final = frozenset(  # for which a container waits to be started again
    {"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerConfigError"}
    | {"CreateContainerError", "RunContainerError", "ErrImageNeverPull"}
)


def replicas_of(workload: Object) -> int:
    """Returns how many replicas a workload wants: one, if it does not say."""
    replicas = dig(workload, "spec", "replicas")
    return 1 if replicas is None else int(replicas)


def is_terminal(pod: Object) -> bool:
    """Returns whether all of its containers have ended for good."""
    return dig(pod, "status", "phase") in ("Succeeded", "Failed")


def container_statuses(pod: Object) -> list[Object]:
    """Returns what a pod says of its containers, of init containers first."""
    fields = ("initContainerStatuses", "containerStatuses")
    return [each for field in fields for each in dig(pod, "status", field) or ()]


def is_failing(pod: Object) -> bool:
    """Returns whether one of its containers crashes again and again, or cannot be started at all."""
    return any(dig(each, "state", "waiting", "reason") in _FAILURES for each in container_statuses(pod))


def port_number(container: Object, port: int | str) -> int | None:
    if isinstance(port, int):
        return port
    if port.isdigit():
        return int(port)
    return next((item["containerPort"] for item in container.get("ports") or [] if item.get("name") == port), None)


def port_of_pod(pod: Object, port: int | str) -> int | None:
    """Returns the number that the first container which knows the port has for it."""
    numbers = (port_number(container, port) for container in dig(pod, "spec", "containers") or [])
    return next((number for number in numbers if number is not None), None)

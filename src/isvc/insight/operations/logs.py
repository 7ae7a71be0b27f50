"""The containers of a service that have logs, and their lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from typing import NamedTuple

from isvc.insight.diagnosis.pods import pods_of
from isvc.kube.masking import plain_text
from isvc.kube.objects import Object, dig, labels_of, name_of, namespace_of
from isvc.kube.pods import container_statuses
from isvc.kube.resource import PODS
from isvc.toolkit.client import Client

LOOK_EVERY = 1.0  # seconds between two looks for new containers


class Stream(NamedTuple):
    """One container of one pod, started for the so-manieth time."""

    pod: str
    container: str
    restarts: int
    component: str


async def streams(client: Client, service: Object) -> list[Stream]:
    return started_streams(service, (await client.list(PODS, namespace_of(service))).items)


def started_streams(service: Object, pods: Iterable[Object]) -> list[Stream]:
    """Returns the containers of a service that have started, those of older pods and init containers first."""
    return [
        Stream(name_of(pod), str(status["name"]), int(status.get("restartCount") or 0), component_of(pod))
        for pod in reversed(pods_of(service, pods))
        for status in container_statuses(pod)
        if any(dig(status, when, how) for when in ("state", "lastState") for how in ("running", "terminated"))
    ]


async def lines(
    client: Client, namespace: str, stream: Stream, *, tail: int, follow: bool, since: str = ""
) -> AsyncGenerator[str, None]:
    """Yields what a container has logged: its last `tail` lines, or all if negative, since a time if one is given."""
    params = {"container": stream.container, **({"tailLines": str(tail)} if tail >= 0 else {})}
    if follow:
        params["follow"] = "true"
    if since:
        params["sinceTime"] = since
    async for line in client.lines(f"{PODS.path(namespace, stream.pod)}/log", params):
        yield plain_text(line.decode(errors="replace").rstrip())


def component_of(pod: Object) -> str:
    labels = labels_of(pod)
    named = labels.get("component") or labels.get("app.kubernetes.io/component") or labels.get("serving.kserve.io/kind")
    return named or "router"

"""The state of a service in one sentence, to be read after its name."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.insight.diagnosis.finding import Finding, Level
from isvc.kube.objects import Object, dig
from isvc.kube.readiness import is_ready, readiness
from isvc.serving.workload.sleep import is_waking


def state(service: Object, findings: Sequence[Finding]) -> str:
    """Says whether it is ready, and what keeps it from that, or is odd about it."""
    first = findings[0] if findings else None
    if is_waking(service):
        return f"is waking up: {first.message}" if first else "is waking up"
    if is_ready(service):
        ready = "is ready" + _where(service)
        return f"{ready}, but {first.message}" if first else ready
    if first is None:
        return "is starting"
    if first.level is Level.BLOCKS:
        return "is stopped" if first.cause == "Stopped" else f"is not ready: {first.message}"
    return f"is starting: {first.message}"


def _where(service: Object) -> str:
    """Returns its address, or what a kind that has none says of itself: on how many nodes a model is."""
    if url := dig(service, "status", "url"):
        return f" at {url}"
    message = readiness(service).get("message")
    return f": {message}" if message else ""

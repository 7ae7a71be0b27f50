"""Whether a service is ready."""

from __future__ import annotations

from isvc.kube.conditions import is_true
from isvc.kube.objects import Object, dig


def is_ready(service: Object) -> bool:
    """Whether the service is ready, and for the spec that it has now."""
    return is_seen(service) and is_true(dig(service, "status", "conditions") or (), "Ready")


def is_seen(service: Object) -> bool:
    """Whether its controller has reported on the spec that it has now, as far as it says so."""
    seen = dig(service, "status", "observedGeneration")
    return not seen or seen >= (dig(service, "metadata", "generation") or 0)

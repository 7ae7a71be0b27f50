"""Whether a service is ready."""

from __future__ import annotations

from isvc.kube.conditions import is_true
from isvc.kube.objects import Object, dig


def is_ready(service: Object) -> bool:
    """Ready, and for the spec that the service has now."""
    seen = dig(service, "status", "observedGeneration")
    current = not seen or seen >= (dig(service, "metadata", "generation") or 0)
    return current and is_true(dig(service, "status", "conditions") or (), "Ready")

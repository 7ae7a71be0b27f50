"""The presets of LLMInferenceServices, as this machine wants them.

They are those that ship for clusters, with what only a cluster needs taken away: waiting for other machines to notice a
start or a stop, and resources that are set aside for a scheduler. Images stay: the node has local programs for them.
"""

from __future__ import annotations

from typing import Any, Final

from isvc.kube.objects import Object
from isvc.serving.llm.shipped import shipped_presets

_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
_SECONDS_TO_START: Final = 600


def local_presets(namespace: str) -> list[Object]:
    return [
        {**preset, "metadata": {**preset["metadata"], "namespace": namespace}, "spec": _adapted(preset["spec"])}
        for preset in shipped_presets()
    ]


def _adapted(value: Any) -> Any:
    """The value with every container in it adapted, however deep."""
    if isinstance(value, list):
        return [_adapted(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "image" in value and "name" in value:
        return _container(value)
    return {key: _adapted(each) for key, each in value.items()}


def _container(container: Object) -> Object:
    """Probed every second from the start, and stopped at once: the node drains a pod itself."""
    kept = {key: each for key, each in container.items() if key not in ("lifecycle", "resources")}
    return kept | {name: _probe(name, kept[name]) for name in _PROBES if name in kept}


def _probe(name: str, probe: Object) -> Object:
    kept = {key: each for key, each in probe.items() if key != "initialDelaySeconds"}
    match name:
        case "startupProbe":
            return kept | {"periodSeconds": 1, "failureThreshold": _SECONDS_TO_START}
        case "readinessProbe":
            return kept | {"periodSeconds": 1}
        case _:
            return kept

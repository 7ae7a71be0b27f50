"""The runtimes and presets that ship for clusters, as this machine wants them.

What only a cluster needs is taken away: waiting for other machines to notice a start or a stop, and resources that are
set aside for a scheduler. Images stay: the node has local programs for them. A few runtimes are of this machine alone.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any, Final

from isvc.kube.go_yaml import load_all
from isvc.kube.objects import Object, name_of
from isvc.serving.shipped import shipped_presets, shipped_runtimes

_RUNNABLE: Final = frozenset(
    ("kserve-sklearnserver", "kserve-lgbserver", "kserve-pmmlserver", "kserve-predictiveserver",
     "kserve-huggingfaceserver", "kserve-vllmserver", "default")
)  # fmt: skip
_PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
_SECONDS_TO_START: Final = 600


def local_runtimes() -> list[Object]:
    """Returns those for which the node has a program, with the storage container; then those of this machine."""
    own = load_all(files("isvc.local.install").joinpath("runtimes.yaml").read_bytes())
    shipped = (runtime for runtime in shipped_runtimes() if name_of(runtime) in _RUNNABLE)
    return [*(_adapt(runtime, without=()) for runtime in shipped), *own]


def local_presets(namespace: str) -> list[Object]:
    return [
        {
            **preset,
            "metadata": {**preset["metadata"], "namespace": namespace},
            "spec": _adapt(preset["spec"], without=("lifecycle", "resources")),
        }
        for preset in shipped_presets()
    ]


def _adapt(value: Any, without: tuple[str, ...]) -> Any:
    """Returns the value with every container in it probed every second from the start, however deep.

    What they are `without` concerns other machines; the node drains a pod itself.
    """
    if isinstance(value, list):
        return [_adapt(each, without) for each in value]
    if not isinstance(value, dict):
        return value
    if "image" not in value or "name" not in value:
        return {key: _adapt(each, without) for key, each in value.items()}
    return {key: _probe(key, each) if key in _PROBES else each for key, each in value.items() if key not in without}


def _probe(name: str, probe: Object) -> Object:
    kept = {key: each for key, each in probe.items() if key != "initialDelaySeconds"}
    match name:
        case "startupProbe":
            return kept | {"periodSeconds": 1, "failureThreshold": _SECONDS_TO_START}
        case "readinessProbe":
            return kept | {"periodSeconds": 1}
        case _:
            return kept

"""Whatever pod was recorded runs where PodSecurity enforces `restricted`, as far as it is ours: containers of users are
made to pass first, and those of ours that do not are listed."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from tests.cluster.test_restricted import ALL, CAPABILITIES, ROOT, SECCOMP, Refusals, refusals, restricted
from tests.golden.player import HERE as GOLDEN
from tests.recordings import FOLDER, load_all

from isvc.kube.objects import Object, deep_copy
from isvc.toolkit.client import Client

__all__ = ["restricted"]  # a fixture

FITTING: Final = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}

RECORDED: Final[Refusals] = {
    # The storage container of the recorded cluster says nothing of security, as KServe's had it once. The chart's does.
    "storage-initializer": ALL,
    # As KServe's, or templates of LLMs would change when they are taken over.
    "modelcar": ALL,
    "modelcar-init": ALL,
    "llm-d-routing-sidecar": {SECCOMP},
    "router": {SECCOMP},
    # Nodes that share memory over InfiniBand need capabilities; the tokenizer's image runs as root.
    "main": {CAPABILITIES, ROOT},
}
"""What pods are refused for that were recorded, by the container that we put into them."""
# The agent has the securityContext of the container beside it, so that of recorded ones is a user's, too.
OURS: Final = {*RECORDED, "prediction-server", "training-server", "download"}
USERS: Final = ("registry.example.com", "registry.test")
"""Where recorded users have images."""


async def test_recorded_pods_pass_but_for_those_that_are_listed(client: Client, restricted: str) -> None:
    found: Refusals = defaultdict(set)
    pods = recorded_pods()
    for spec in pods:
        for container, reasons in (await refusals(client, restricted, spec)).items():
            found[container] |= reasons
    assert len(pods) > 300
    assert found == RECORDED


def recorded_pods() -> list[Object]:
    """Returns the pods of all recordings, each once; what users wrote of them passes."""
    paths = (*FOLDER.glob("golden/*/*.yaml"), *FOLDER.glob("localmodel/golden/*/*.yaml"), *GOLDEN.glob("recordings/*"))
    found = (fit(deep_copy(spec)) for path in sorted(paths) for spec in pod_specs(load_all(path)))
    return list({json.dumps(spec, sort_keys=True): spec for spec in found}.values())


def pod_specs(value: Any) -> Iterator[Object]:
    """Yields the spec of every pod and of every template of pods, wherever it stands in recorded objects."""
    if isinstance(value, list):
        for each in value:
            yield from pod_specs(each)
    elif isinstance(value, dict):
        spec = value.get("spec")
        if isinstance(spec, dict) and "containers" in spec and value.get("kind", "Pod") == "Pod":
            yield spec
        for each in value.values():
            yield from pod_specs(each)


def fit(spec: Object) -> Object:
    """Returns the pod with containers of users that pass, named as Knative does where that is left to it."""
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        if container.get("image", "").startswith("kserve/router"):
            container["name"] = "router"
        container.setdefault("name", "user-container")
        container.pop("resources", None)  # of which some are refused
        if container["name"] not in OURS or container["image"].startswith(USERS):
            container["securityContext"] = FITTING
        if container.get("readinessProbe", {}).get("tcpSocket", {}).get("port") == 0:
            del container["readinessProbe"]
    return spec

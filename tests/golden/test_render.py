"""What is rendered for a recorded case's first step is what the reference had made of it once all was ready.

Cases whose first state of rest is not a ready one are held against that state: what was there is rendered, too, and a
refusal is one here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.golden.recorded import CRDS, FOLDER, load, load_profile, snapshots
from tests.unit.api.conformance import configuration

from isvc import render
from isvc.engine.comparison import ALLOTTED
from isvc.engine.paths import steps, without
from isvc.insight.rendering import Rendering
from isvc.insight.simulation.filled_in import with_known_defaults
from isvc.insight.simulation.kinds import resource_of
from isvc.kube.objects import Object

WATCHED = {"status", "pods"}  # what others do meanwhile


@dataclass(frozen=True)
class Case:
    """The documents of a first step, and the recorded state to compare with: `ready` if that is one of readiness."""

    profile: str
    name: str
    applied: list[Object]
    state: Object
    refusals: int
    ready: bool

    def __str__(self) -> str:
        return f"{self.profile}/{self.name}"


def cases() -> Iterator[Case]:
    for path in sorted(FOLDER.glob("cases/*/*.yaml")):
        profile, name = path.parent.name, path.stem
        case = json.loads(json.dumps(load(path)).replace("$NAMESPACE", name))
        states = load(FOLDER / "golden" / profile / path.name)
        first = case["steps"][0]
        position = _readiness(case["steps"])
        state = states[position or 0]["objects"]
        refusals = len(states[0].get("results") or ())
        yield Case(profile, name, first["apply"], state, refusals, position is not None)


def _readiness(played: list[Object]) -> int | None:
    """The first step after which all is ready and nobody has changed a document."""
    for number, step in enumerate(played):
        if number and not step.keys() <= {"name", "world", *WATCHED}:
            return None
        if step.get("world") == "ready":
            return number
    return None


CASES = list(cases())
pytestmark = pytest.mark.skipif(not CASES, reason=f"no recorded cases in {FOLDER}")


def rendered(case: Case) -> Rendering:
    around = [obj for path in sorted(FOLDER.glob("base/*.yaml")) for obj in _load_all(path)]
    around = [obj for obj in around if obj["metadata"]["name"] != "inferenceservice-config"]
    profile = load_profile(case.profile)
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "inferenceservice-config"},
        "data": configuration(case.profile),
    }
    return render(
        *case.applied,
        extra=[*around, *(profile.get("objects") or ())],
        config=config,
        namespace=case.name,
        without=[name for name in profile.get("withoutCrds") or () if name in CRDS],
        shipped=False,
    )


def _load_all(path: Path) -> list[Object]:
    return [obj for obj in yaml.load_all(path.read_text(), yaml.CSafeLoader) if obj]


def differences(case: Case, rendering: Rendering) -> list[str]:
    applied = {_key(obj) for obj in case.applied}
    recorded = {key: obj for key, obj in case.state.items() if key not in applied and obj["kind"] != "Pod"}
    found = {_key(child.stored): child.stored for child in rendering.children}
    lines: list[str] = []
    for key in sorted(recorded.keys() | found.keys()):
        if key not in found:
            lines.append(f"{key}: not rendered")
        elif key not in recorded:
            lines += [f"{key}: rendered"] if case.ready else []
        else:
            lines += snapshots().differences(
                _normal(recorded[key]), _normal(_defaulted(found[key], recorded[key])), key
            )
    return lines


def _defaulted(obj: Object, recorded: Object) -> Object:
    resource = resource_of(obj)
    assert resource is not None
    return with_known_defaults(obj, recorded, resource) if "." in resource.group else obj


def _normal(obj: Object) -> Object:
    normal: Object = snapshots().normalize({key: value for key, value in obj.items() if key != "status"})
    for path in ALLOTTED.get((obj["apiVersion"].rpartition("/")[0], obj["kind"]), ()):
        normal = without(normal, steps(path))
    if obj["kind"] == "Secret":
        normal["data"] = dict.fromkeys(obj["data"])
    return normal


def _key(obj: Any) -> str:
    key: str = snapshots().key(obj)
    return key


# What cannot be known without the recording's cluster: the case, a pattern of the differences, and why.
UNKNOWABLE = {
    "knative-path/path-explainer": (
        r"VirtualService.*rewrite: \(absent\)",
        "the recording's Istio CRD is older than uriRegexRewrite, which its API server therefore dropped",
    ),
    "llmisvc-routing/llm-router-group": (
        r"HTTPRoute.*backendRefs\[(green|blue)-kserve-workload-svc\]: \(absent\)",
        "members of a group route to each other once they are ready, which the recording's first state is before",
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rendered_as_recorded(case: Case) -> None:
    rendering = rendered(case)
    found = differences(case, rendering)
    if known := UNKNOWABLE.get(str(case)):
        assert found, "there is no difference any more: take it from the list"
        found = [line for line in found if not re.match(known[0], line)]
    assert found == [], [str(each) for each in rendering.problems]
    assert len(rendering.problems) >= case.refusals, "what the reference refused is refused"

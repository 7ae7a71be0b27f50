"""What our webhooks refuse has the words of KServe's refusals, which scripts look for.

Recorded cases are played in memory. A refusal of ours has at least half of the words of KServe's, whatever it says
besides, or KServe's is in the table of `docs/refusals.md`, with the reason.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pytest
from tests.conformance.recorded import load_profile
from tests.conformance.test_render import CASES, Case
from tests.recordings import FOLDER, load_all
from tests.unit.api.conformance import configuration

from isvc.api.llm.conversion import KINDS, convert
from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.insight.simulation.kinds import resource_of
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object, deep_copy, name_of, namespace_of
from isvc.kube.patch import merge_patch
from isvc.kube.resource import CONFIG_MAPS

DOCS: Final = Path(__file__).parents[2] / "docs" / "refusals.md"
DENIED: Final = "denied the request: "
HALF: Final = 0.5
REFUSING: Final = [case for case in CASES if any("results" in state for state in case.states)]


Write: TypeAlias = tuple[str, str]
"""A verb and its target."""


class Refusal(NamedTuple):
    """What both answered to the same write."""

    target: str
    theirs: str
    ours: str


async def simulation_of(case: Case) -> Simulation:
    around = [obj for path in sorted(FOLDER.glob("base/*.yaml")) for obj in load_all(path)]
    around = [obj for obj in around if name_of(obj) != "inferenceservice-config"]
    around += load_profile(case.profile).get("objects") or ()
    metadata = {"name": "inferenceservice-config", "namespace": "kserve", "resourceVersion": "1"}
    simulation = Simulation()
    simulation.seed((resource, obj) for obj in around if (resource := resource_of(obj)))
    simulation.seed([(CONFIG_MAPS, {"metadata": metadata, "data": configuration(case.profile)})])
    return simulation


async def refusals(case: Case) -> AsyncIterator[Refusal]:
    """Yields what KServe refused of a case and we do, too, in the order of the writes."""
    simulation = await simulation_of(case)
    for step, state in zip(case.steps, case.states, strict=True):
        theirs, ours = defaultdict[Write, list[str]](list), defaultdict[Write, list[str]](list)
        for each in state.get("results") or ():
            theirs[each["verb"], each["target"]].append(each["message"])
        for verb in ("apply", "update", "delete"):
            for entry in step.get(verb) or ():
                if message := await answer(simulation, verb, deep_copy(entry), case.name):
                    ours[verb, f"{entry['kind']}/{name_of(entry)}"].append(message)
        for write, messages in theirs.items():
            if len(messages) != len(ours[write]):
                continue  # what else was refused depends on what controllers had done
            for their, our in zip(messages, ours[write], strict=True):
                if DENIED in their and DENIED in our:
                    yield Refusal(write[1], their.partition(DENIED)[2], our.partition(DENIED)[2])


async def answer(simulation: Simulation, verb: str, entry: Object, namespace: str) -> str | None:
    """Writes an object, and returns why that is refused."""
    resource = resource_of(entry)
    if resource is None:
        return None
    if resource.namespaced:
        entry["metadata"].setdefault("namespace", namespace)
    stored = (
        resource_of({**entry, "apiVersion": LLM_INFERENCE_SERVICES.api_version}) if entry["kind"] in KINDS else resource
    )
    live = simulation.objects.get(stored or resource, name_of(entry), namespace_of(entry))
    if live is not None and entry["kind"] in KINDS:
        (live,) = convert([live], entry["apiVersion"])
    try:
        if verb == "delete":
            await simulation.client.delete(resource, name_of(entry), namespace_of(entry))
        else:
            await simulation.apply(resource, entry if live is None else merge_patch.apply(live, entry))
    except ApiError as error:
        return error.message
    return None


def sentence(message: str) -> str:
    """Returns what is said of the object, without its name, the value and examples."""
    named = re.sub(r"^.*? is invalid: ", "", message)
    named = re.sub(r"^\S+: (Required value|Forbidden): |^\S+: \w+ value: (\".*?\"|[-\w]+|{.*}|\[.*\]): ", "", named)
    return named.partition(" (e.g.")[0]


def share(theirs: str, ours: str) -> float:
    """Returns how much of a sentence another one has, by its words."""
    said = {*words(ours)}
    wanted = words(sentence(theirs))
    return sum(word in said for word in wanted) / len(wanted)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z]{2,}", text.lower())


def on_purpose() -> list[str]:
    """Returns the beginnings of KServe's sentences that ours differ from, from the table in the documentation."""
    rows = re.findall(r"^\| `([^`]+)` \|", DOCS.read_text(), re.MULTILINE)
    assert rows
    return rows


@pytest.mark.parametrize("case", REFUSING, ids=str)
async def test_refusals_have_the_words_of_kserve_or_a_reason(case: Case) -> None:
    listed = on_purpose()
    found = [each async for each in refusals(case)]
    others = [each for each in found if share(each.theirs, each.ours) < HALF]
    assert not [each for each in others if not any(part in each.theirs for part in listed)]


async def test_what_is_listed_as_different_is() -> None:
    found = [each for case in REFUSING async for each in refusals(case)]
    assert len(found) > 150
    different = [each.theirs for each in found if share(each.theirs, each.ours) < HALF]
    assert [part for part in on_purpose() if not any(part in theirs for theirs in different)] == []

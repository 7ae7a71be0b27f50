"""Where the reference came to rest with an LLMInferenceService, we rest: a reconcile plans exactly what is there."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.conformance.recorded import (
    Memory,
    State,
    differences,
    load_golden,
    load_profile,
    shared,
    snapshots,
    states,
    unexplained,
)
from tests.recordings import FOLDER, load

from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.kind import make_kind
from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.plan import Planned
from isvc.controllers.llmisvc.watches import reads
from isvc.engine.apply import Engine
from isvc.engine.kind import Kind
from isvc.engine.needs import UNKNOWN, Answers, DryRun, Need, ServerVersion, Stored
from isvc.engine.plan import Child
from isvc.kube.objects import Object, name_of, namespace_of
from isvc.kube.patch import merge_patch
from isvc.kube.resource import SECRETS, SERVICE_ACCOUNTS, Resource
from isvc.serving.environment import Environment
from isvc.serving.llm import names

NOW = "2026-01-01T00:00:00Z"
# Recordings leave out the status of autoscalers and the generation that a gateway has seen of a route, and a server has
# to say that a merged spec is invalid.
NOT_RECORDED = re.compile(
    "scaling-hpa: (metrics|other)|invalid-rendered-config: (create|broken)"
    "|drift-corrected: changed by another|pool-migration: the older kind is refused|route-custom-spec: no own rules"
)
# What the reference left behind; see docs/decisions/20261115-llm-routing.md.
LEFT_BEHIND = re.compile("lora-adapters: none")
STATES = [
    state for state in states("llmisvc*") if not (NOT_RECORDED.search(str(state)) or LEFT_BEHIND.search(str(state)))
]
pytestmark = pytest.mark.skipif(not STATES, reason=f"no recorded cases in {FOLDER}")


class Unwanted(Exception):
    """A write that the reference did not need."""


class NoWrites:
    """A client that nothing should be asked of; deletions of what the reference forgets to delete are let through."""

    field_manager = "llmisvc-manager"

    def __init__(self, state: State) -> None:
        self._state = state

    async def create(self, resource: Resource, obj: Object) -> Object:
        raise Unwanted(f"creates {resource} {name_of(obj)}: {obj}")

    async def update(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        key = f"{resource.kind}{'.' + resource.group if resource.group else ''}/{name_of(obj)}"
        recorded = self._state.objects.get(key, {})
        lines = list(snapshots().differences(recorded, snapshots().normalize(obj), key))
        raise Unwanted(f"updates {resource} {name_of(obj)}: " + "\n".join(lines))

    async def delete(self, resource: Resource, name: str, *_: Any, **__: Any) -> Object:
        line = f"{self._state.step}: .objects.{resource.kind}.{resource.group}/{name}: deleted"
        if any(re.search(pattern, line) for pattern in self._state.ignore):
            return {}
        raise Unwanted(f"deletes {resource} {name}")

    async def find(self, resource: Resource, name: str, namespace: str = "") -> Object:
        raise Unwanted(f"reads {resource} {name}")

    async def patch(self, resource: Resource, name: str, patch: object, namespace: str = "") -> Object:
        raise Unwanted(f"patches {resource} {name}: {patch}")


class Cluster(Memory):
    """A recorded state, with the presets and the objects of its profile around it."""

    def __init__(self, state: State) -> None:
        super().__init__(state, reads(Environment()))
        for resource in (LLM_INFERENCE_SERVICES, LLM_INFERENCE_SERVICE_CONFIGS):
            for obj in self.list(resource):
                _complete(obj["spec"], _written(state, obj).get("spec") or {})
        for account in self.list(SERVICE_ACCOUNTS):
            account["secrets"] = _written(state, account).get("secrets") or []
        for obj in (*shared(LLM_INFERENCE_SERVICE_CONFIGS.kind), *(load_profile(state.profile).get("objects") or ())):
            self._add(obj)

    def certify(self, service: Object, wanted: Child) -> None:
        """Recordings leave certificates out: put the one in place that is issued."""
        secret = self.get(SECRETS, names.certificates(name_of(service)), namespace_of(service))
        assert secret is not None, "a certificate is asked for that the recording does not have"
        secret["data"] = wanted.fill().manifest["data"]
        for key in secret["metadata"]["annotations"]:
            secret["metadata"]["annotations"][key] = "2033-01-01T00:00:00Z"


def test_there_is_a_service_in_most_recorded_states() -> None:
    empty = [state for state in STATES if not Cluster(state).list(LLM_INFERENCE_SERVICES)]
    assert len(empty) < len(STATES) / 10


@pytest.mark.parametrize("state", STATES, ids=str)
async def test_a_recorded_state_is_left_as_it_is(state: State) -> None:
    cluster = Cluster(state)
    kind = make_kind(cluster, Environment())
    for service in cluster.list(LLM_INFERENCE_SERVICES):
        observed, planned = _planned(cluster, kind, service)
        outcome = await Engine(NoWrites(state), cluster).apply(service, planned)
        status = kind.fold(observed, planned, outcome).status
        assert list(differences(state, service, status)) == []
        assert unexplained(status) == []


def _planned(cluster: Cluster, kind: Kind[Observed, Planned], service: Object) -> tuple[Observed, Planned]:
    answers = Answers(recall=lambda need: _recall(cluster, need))
    while True:
        observed = kind.observe(service, answers, NOW)
        planned = kind.plan(observed)
        late = [child for child in planned.wanted() if child.late]
        if not late:
            return observed, planned
        cluster.certify(service, *late)


def _recall(cluster: Cluster, need: Need[Any]) -> Any:
    """Whatever is not recorded does not exist, and what was merged was never refused."""
    match need:
        case Stored(resource, name, namespace):
            return cluster.get(resource, name, namespace)
        case DryRun():
            return None
        case ServerVersion():
            return "1", "35"
    return UNKNOWN


def _written(state: State, service: Object) -> Object:
    """The service as the steps up to this state wrote it, refusals aside."""
    case, golden = load(FOLDER / "cases" / state.profile / f"{state.case}.yaml"), load_golden(state)
    written: Object = {}
    for step, recorded in zip(case["steps"], golden, strict=True):
        if not recorded.get("results"):
            for entry in (*step.get("apply", ()), *step.get("update", ())):
                if entry["kind"] == service["kind"] and entry["metadata"]["name"] == name_of(service):
                    written = merge_patch.apply(written, entry)
        if recorded["step"] == state.step:
            break
    return written


def _complete(recorded: Any, written: Any) -> None:
    """Put back the empty maps that recordings leave out: `route: {}` asks for a route."""
    if isinstance(recorded, dict) and isinstance(written, dict):
        for key, value in written.items():
            if key not in recorded and isinstance(value, dict) and not _says_anything(value):
                recorded[key] = value
            elif key in recorded:
                _complete(recorded[key], value)
    elif isinstance(recorded, list) and isinstance(written, list) and len(recorded) == len(written):
        for one, other in zip(recorded, written, strict=True):
            _complete(one, other)


def _says_anything(value: Any) -> bool:
    return any(map(_says_anything, value.values())) if isinstance(value, dict) else value is not None

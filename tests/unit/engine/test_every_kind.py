"""What the reconciler promises of every kind: a malformed object and a bug of ours are reported, and an end comes.

The API server here has no schema and no webhooks, as on a cluster with KServe's minimal CRDs: it stores anything.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import pytest
from tests.manual_clock import ManualClock

import isvc.controllers
from isvc.api.resources import (
    INFERENCE_GRAPHS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICE_CONFIGS,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
    TRAINED_MODELS,
)
from isvc.controllers.inferencegraph import watches as inferencegraph
from isvc.controllers.inferenceservice import watches as inferenceservice
from isvc.controllers.llmisvc import watches as llmisvc
from isvc.controllers.llmisvc.config import watches as llmisvc_config
from isvc.controllers.localmodel import watches as localmodel
from isvc.controllers.localmodel.lists import watches as localmodel_lists
from isvc.controllers.localmodel.namespace import watches as localmodel_namespace
from isvc.controllers.trainedmodel import watches as trainedmodel
from isvc.engine.events import Event
from isvc.engine.reconciler import Reconciler
from isvc.insight.simulation.server import MemoryServer
from isvc.insight.simulation.simulation import KUBERNETES, Memory
from isvc.kube.conditions import find
from isvc.kube.errors import Conflict, InternalError
from isvc.kube.objects import Key, Object
from isvc.kube.resource import CONFIG_MAPS, NODES, Resource
from isvc.serving.environment import Environment
from isvc.toolkit.client import Client
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller

CONTAINER = {"name": "kserve-container", "image": "server:1"}
POD = {"containers": [{"name": "main", "image": "server:1"}]}
SERVICE = {"predictor": {"containers": [CONTAINER]}}
CACHE = {"sourceModelUri": "gs://a/b", "modelSize": "1Gi", "nodeGroups": ["disks"]}
VOLUME = {"capacity": {"storage": "1Gi"}, "hostPath": {"path": "/models"}, "accessModes": ["ReadWriteOnce"]}
MODEL = {"storageUri": "gs://a/b", "framework": "sklearn", "memory": "1Gi"}


@dataclass(frozen=True)
class Case:
    """A kind: how its controller is made, a spec that it can do with, and one that is not of its type."""

    make: Callable[[Context, Environment], Controller]
    resource: Resource
    spec: Object
    malformed: Any
    field: str


CASES = {
    "inferenceservice": Case(
        inferenceservice.controller,
        INFERENCE_SERVICES,
        SERVICE,
        {"predictor": {"minReplicas": "one"}},
        "spec.predictor.minReplicas",
    ),
    "inferencegraph": Case(
        inferencegraph.controller,
        INFERENCE_GRAPHS,
        {"nodes": {"root": {"routerType": "Sequence", "steps": [{"serviceUrl": "http://a.test"}]}}},
        {"nodes": "root"},
        "spec.nodes",
    ),
    "trainedmodel": Case(
        trainedmodel.controller,
        TRAINED_MODELS,
        {"inferenceService": "fleet", "model": MODEL},
        {"inferenceService": "fleet", "model": {**MODEL, "storageUri": 7}},
        "spec.model.storageUri",
    ),
    "llmisvc": Case(
        llmisvc.controller,
        LLM_INFERENCE_SERVICES,
        {"model": {"uri": "pvc://claim/m"}},
        {"model": {"uri": "pvc://claim/m"}, "replicas": "two"},
        "spec.replicas",
    ),
    "llmisvc.config": Case(
        llmisvc_config.controller, LLM_INFERENCE_SERVICE_CONFIGS, {"replicas": 2}, {"replicas": "two"}, "spec.replicas"
    ),
    "localmodel": Case(
        localmodel.controller,
        LOCAL_MODEL_CACHES,
        CACHE,
        {**CACHE, "storage": {"key": 7}},
        "spec.storage.key",
    ),
    "localmodel.namespace": Case(
        localmodel_namespace.controller,
        LOCAL_MODEL_NAMESPACE_CACHES,
        CACHE,
        {**CACHE, "nodeGroups": "disks"},
        "spec.nodeGroups",
    ),
    "localmodel.lists": Case(
        localmodel_lists.controller,
        LOCAL_MODEL_NODES,
        {"localModels": []},
        {"localModels": [{"modelName": 7}]},
        "spec.localModels[0].modelName",
    ),
}
AROUND: list[tuple[Resource, Object]] = [
    (
        CONFIG_MAPS,
        {
            "metadata": {"name": "inferenceservice-config", "namespace": "kserve", "resourceVersion": "1"},
            "data": {
                "deploy": '{"defaultDeploymentMode": "Standard"}',
                "localModel": '{"enabled": true, "jobNamespace": "jobs"}',
            },
        },
    ),
    (
        LLM_INFERENCE_SERVICE_CONFIGS,
        {"metadata": {"name": "kserve-config-llm-template", "namespace": "kserve"}, "spec": {"template": POD}},
    ),
    (INFERENCE_SERVICES, {"metadata": {"name": "fleet", "namespace": "ns"}, "spec": SERVICE}),
    (NODES, {"metadata": {"name": "it"}}),
    (
        LOCAL_MODEL_NODE_GROUPS,
        {
            "metadata": {"name": "disks"},
            "spec": {"storageLimit": "1Gi", "persistentVolumeSpec": VOLUME, "persistentVolumeClaimSpec": {}},
        },
    ),
]


class Lenient(MemoryServer):
    """Stores whatever it is given."""

    def __init__(self, objects: Memory, clock: Any) -> None:
        super().__init__(objects, clock, KUBERNETES)
        self.admission = self

    async def admit(self, resource: Resource, new: Object, old: Object | None = None) -> Object:
        return new


class World:
    """An object of a kind, its reconciler, and what was written about it."""

    def __init__(self, case: Case, spec: Any, status: Any = None, **metadata: Any) -> None:
        self.resource = case.resource
        self.objects, self.clock = Memory(), ManualClock()
        self.server = Lenient(self.objects, self.clock)
        self.events: list[Event] = []
        self.writes = 0
        controller = case.make(Context(Client(self.server), self.objects, self, self.clock), Environment())
        self.objects.declare(*controller.reads)
        self.reconciler: Reconciler = controller.reconcile.__self__  # type: ignore[attr-defined]
        for resource, obj in AROUND:
            self.objects.put(resource, obj)
        self.key = Key("ns" if case.resource.namespaced else "", "it")
        named = {"name": "it", "uid": "u", "resourceVersion": "1", "generation": 1}
        named |= {"namespace": self.key.namespace} if self.key.namespace else {}
        kind = {"apiVersion": case.resource.api_version, "kind": case.resource.kind}
        self.objects.put(
            case.resource, {**kind, "metadata": {**named, **metadata}, "spec": spec, "status": status or {}}
        )
        self.server.changed = self._changed

    def event(self, obj: Object, *event: str) -> None:
        self.events.append(Event(*event))

    def for_component(self, source: str) -> World:
        return self

    def _changed(self, resource: Resource, before: Object | None, after: Object | None) -> None:
        self.writes += 1

    async def reconcile(self) -> Any:
        return await self.reconciler.reconcile(self.key)

    def replace(self) -> None:
        """Deletes the object and creates it again, before anybody hears of it."""
        before = self.live or {}
        metadata = {**before["metadata"], "uid": "another", "resourceVersion": "900", "finalizers": []}
        self.objects.put(self.resource, {**before, "metadata": metadata, "status": {}})

    def break_step(self, step: str, error: Exception) -> Any:
        """From now on the step of the kind raises; returns the kind as it was."""

        def broken(*_: object) -> None:
            raise error

        before: Any = self.reconciler.kind
        self.reconciler.kind = replace(before, **{step: broken})
        return before

    @property
    def live(self) -> Object | None:
        return self.objects.get(self.resource, *reversed(self.key))

    @property
    def condition(self) -> Object:
        """The condition that says what is wrong with an object as such; the event, of a kind without conditions."""
        conditions = self.reconciler.kind.conditions
        if conditions is None:
            return self.events[-1]._asdict() if self.events else {}
        kind = next(iter(conditions.dependents), conditions.happy)
        return find((self.live or {})["status"].get("conditions") or (), kind) or {}

    @property
    def observed_generation(self) -> int:
        return int((self.live or {})["status"].get("observedGeneration") or 0)

    @property
    def ready(self) -> Object:
        return find((self.live or {})["status"].get("conditions") or (), "Ready") or {}


def test_every_kind_is_in_the_table() -> None:
    modules = pkgutil.walk_packages(isvc.controllers.__path__, "isvc.controllers.")
    names = {name.removeprefix("isvc.controllers.").removesuffix(".kind") for _, name, _ in modules if _is_kind(name)}
    assert names == {*CASES, "localmodelnode"}  # which stands behind a disk, and says what is wrong in events alone


def _is_kind(name: str) -> bool:
    return name.endswith(".kind") and bool(import_module(name))


@pytest.fixture(params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


async def test_an_object_that_is_settled_costs_no_write(case: Case) -> None:
    world = World(case, case.spec)
    for _ in range(3):
        await world.reconcile()
        world.reconciler._pauses.forget(world.key)
    assert not [event for event in world.events if event.reason in ("InvalidSpec", "InternalError")]
    before = world.writes
    await world.reconcile()
    assert world.writes == before


@pytest.mark.parametrize("status", [{}, {"conditions": "none"}, {"conditions": [{}]}, {"conditions": None}])
async def test_a_malformed_object_says_which_field_whatever_its_status(case: Case, status: Any) -> None:
    world = World(case, case.malformed, status)
    result = await world.reconcile()
    assert result is None, "an edit brings it back, and nothing else"
    assert world.condition["reason"] == "InvalidSpec"
    assert case.field in world.condition["message"]
    if world.reconciler.kind.conditions is not None:
        assert world.condition["status"] == "False"
        assert (world.ready["status"], world.ready["reason"]) == ("False", "InvalidSpec")
        assert world.observed_generation == 1
    assert [event.reason for event in world.events] == ["InvalidSpec"]
    before = world.writes
    world.reconciler._pauses.forget(world.key)
    await world.reconcile()
    assert (world.writes, len(world.events)) == (before, 1), "said once"


async def test_another_object_of_the_name_is_told_of_as_the_first_was(case: Case) -> None:
    world = World(case, case.malformed)
    await world.reconcile()
    first = list(world.events)
    world.replace()
    assert await world.reconcile() is None, "it does not rest because of the other"
    assert world.events == [*first, *first]


async def test_another_object_of_the_name_did_not_lose_what_the_first_had() -> None:
    """The first had been ready, and was replaced in the instant in which it no longer was."""
    world = World(CASES["inferenceservice"], SERVICE, {"conditions": [{"type": "Ready", "status": "True"}]})
    kind = world.reconciler.kind

    def fold(*given: Any) -> Any:
        world.replace()
        return kind.fold(*given)

    world.reconciler.kind = replace(kind, fold=fold)
    with pytest.raises(Conflict):
        await world.reconcile()
    world.reconciler.kind = kind
    await world.reconcile()
    assert world.ready["status"] != "True"
    assert "InferenceServiceNotReady" not in [event.reason for event in world.events]


async def test_a_malformed_object_can_be_deleted(case: Case) -> None:
    finalizers = [(CASES and World(case, case.spec).reconciler.kind.finalizer) or "another/finalizer"]
    world = World(case, case.malformed, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=finalizers)
    await world.reconcile()
    if world.reconciler.kind.finalizer:
        assert world.live is None
    else:
        assert world.writes == 0, "it is the garbage collector's"


@pytest.mark.parametrize("step", ["observe", "plan", "fold"])
async def test_a_bug_is_reported_as_ours_raised_again_and_withdrawn_when_it_is_gone(case: Case, step: str) -> None:
    world = World(case, case.spec)
    kind = world.break_step(step, TypeError("'NoneType' object is not subscriptable"))
    for _ in range(2):
        with pytest.raises(TypeError):  # which counts as a panic, and is tried again
            await world.reconcile()
    assert world.condition["reason"] == "InternalError"
    if world.reconciler.kind.conditions is not None:
        assert (world.condition["status"], world.observed_generation) == ("Unknown", 1)
    assert "no fault of this" in world.condition["message"]
    assert "TypeError: 'NoneType' object is not subscriptable" in world.condition["message"]
    assert [event.reason for event in world.events].count("InternalError") == 1
    world.reconciler.kind = kind
    world.events.clear()
    for _ in range(2):
        await world.reconcile()
        world.reconciler._pauses.forget(world.key)
    assert "InternalError" not in (world.condition.get("reason"), world.ready.get("reason"))


async def test_a_bug_at_the_end_of_an_object_is_reported_and_keeps_it(case: Case) -> None:
    finalizer = World(case, case.spec).reconciler.kind.finalizer
    if not finalizer:
        return
    world = World(case, case.spec, deletionTimestamp="2026-01-01T00:00:00Z", finalizers=[finalizer])
    world.break_step("finalize", KeyError("models"))
    with pytest.raises(KeyError):
        await world.reconcile()
    assert world.condition["reason"] == "InternalError"
    assert world.live is not None


async def test_what_an_api_server_says_is_no_bug(case: Case) -> None:
    world = World(case, case.spec)
    world.break_step("plan", InternalError("etcd is away"))
    with pytest.raises(InternalError):
        await world.reconcile()
    assert world.condition.get("reason") != "InternalError"
    assert not world.events


@pytest.mark.parametrize(
    "case", [CASES["inferenceservice"], CASES["llmisvc"], CASES["inferencegraph"], CASES["localmodel"]]
)
async def test_one_line_says_that_all_wait_for_a_configuration(case: Case, caplog: pytest.LogCaptureFixture) -> None:
    world = World(case, case.spec)
    [(_, config), *_] = AROUND
    world.objects.put(CONFIG_MAPS, {**config, "data": {"deploy": "{"}})
    for _ in range(3):
        result = await world.reconcile()
        assert result.requeue_after
    (line,) = caplog.messages
    assert "deploy is not JSON" in line


@pytest.mark.parametrize("case", [CASES["inferenceservice"], CASES["llmisvc"], CASES["inferencegraph"]])
async def test_nothing_new_is_begun_by_a_configuration_that_was_deleted(
    case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(case, case.spec)
    await world.reconcile()
    [(_, config), *_] = AROUND
    world.objects.remove(CONFIG_MAPS, "inferenceservice-config", "kserve")
    older, newer = world.key, Key("ns", "newer")
    metadata: Object = {"name": "newer", "namespace": "ns", "uid": "v", "resourceVersion": "1", "generation": 1}
    metadata |= {"finalizers": list(filter(None, [world.reconciler.kind.finalizer]))}  # which a webhook may give it
    world.objects.put(case.resource, {**(world.live or {}), "metadata": metadata, "status": {}})
    before = world.writes
    for _ in range(3):
        result = await world.reconciler.reconcile(newer)
        assert result is not None
        assert result.requeue_after
        world.reconciler._pauses.forget(older)
        await world.reconcile()
    assert world.writes == before, "the older one runs on as it is"
    assert [line for line in caplog.messages if "there is no ConfigMap" in line] == caplog.messages[:1]
    world.objects.put(CONFIG_MAPS, config)
    await world.reconciler.reconcile(newer)
    assert world.writes > before

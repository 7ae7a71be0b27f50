"""An object may be deleted and created again at any moment of its creation, and ends as one that was created once.

Each case creates an object, and replaces it at the first request to the API server, then at a later one, and so on, and
when it is ready. Its children go at once, or stay without an owner, or go when the garbage collector comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from tests.unit.controllers.test_no_edit_is_lost import (
    CONFIG,
    SKLEARN,
    Editing,
    document,
    group_of,
    node,
)

from isvc.api.resources import (
    INFERENCE_GRAPHS,
    INFERENCE_SERVICES,
    LLM_INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    TRAINED_MODELS,
)
from isvc.insight.rendering.renderer import Cluster
from isvc.insight.rendering.shipped import with_section
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.errors import Conflict
from isvc.kube.objects import Object, deep_copy, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_of, owner_refs
from isvc.kube.resource import NODES, SECRETS, Resource
from isvc.programs.options import Options

CASCADES: Final = ("Background", "Foreground", "Orphan")
MOST_STEPS: Final = 6
SERVICE = {"predictor": {"model": SKLEARN}}
FLEET = {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "resources": {"limits": {"memory": "1Gi"}}}}}
MODEL = {"inferenceService": "fleet", "model": {"storageUri": "gs://m", "framework": "sklearn", "memory": "1Gi"}}
STEPS = {"root": {"routerType": "Sequence", "steps": [{"serviceUrl": "http://a.test"}]}}
LLM = {"model": {"uri": "hf://a/b"}, "router": {"route": {}, "gateway": {}, "scheduler": {}}}
CACHE = {"sourceModelUri": "gs://a/b", "modelSize": "1Gi", "nodeGroups": ["disks"]}


@dataclass(frozen=True)
class Case:
    """What is created, what is there before, and how services are run and reached."""

    resource: Resource
    spec: Object
    there: tuple[tuple[Resource, Object], ...] = ()
    mode: str = "Standard"
    gateway_api: bool = True

    @property
    def obj(self) -> Object:
        return document(self.resource, "it", self.spec)


DISKS = ((LOCAL_MODEL_NODE_GROUPS, group_of("a")),)
CASES = {
    "behind a gateway": Case(INFERENCE_SERVICES, SERVICE),
    "behind an ingress": Case(INFERENCE_SERVICES, SERVICE, gateway_api=False),
    "on Knative": Case(INFERENCE_SERVICES, SERVICE, mode="Knative", gateway_api=False),
    "with a list of models": Case(INFERENCE_SERVICES, FLEET),
    "a model": Case(TRAINED_MODELS, MODEL, ((INFERENCE_SERVICES, document(INFERENCE_SERVICES, "fleet", FLEET)),)),
    "a graph": Case(INFERENCE_GRAPHS, {"nodes": STEPS}),
    "an LLM": Case(LLM_INFERENCE_SERVICES, LLM),
    "a cache": Case(LOCAL_MODEL_CACHES, CACHE, DISKS),
    "a cache of a namespace": Case(LOCAL_MODEL_NAMESPACE_CACHES, CACHE, DISKS),
}


async def simulation_of(case: Case) -> Simulation:
    cluster = Cluster(Options())
    cluster.install([], [], mode=case.mode)
    simulation = cluster.simulation
    resource, namespace, name = CONFIG
    config = simulation.objects.get(resource, name, namespace) or {}
    config = with_section(config, "ingress", enableGatewayApi=case.gateway_api)
    config = with_section(config, "localModel", enabled=True, jobNamespace="jobs")
    simulation.seed([(resource, config), *((NODES, node(name)) for name in ("a", "b"))])
    for resource, obj in case.there:
        await simulation.apply(resource, deep_copy(obj))
    await simulation.settle_ready()
    return simulation


class World:
    """A simulated cluster in which somebody deletes an object and creates it again."""

    def __init__(self, simulation: Simulation, case: Case, cascade: str) -> None:
        self.simulation, self.case, self.cascade = simulation, case, cascade
        self.server, self.objects = simulation.server, simulation.objects
        self.is_replaced = False

    @property
    def owner(self) -> Object:
        found = self.objects.get(self.case.resource, "it", namespace_of(self.case.obj))
        assert found is not None
        return found

    async def live(self, *, at: int | None) -> int:
        """Creates the object, replaces it at a request or when it is ready; returns the requests there were."""
        self.server.__class__ = Editing
        assert isinstance(self.server, Editing)
        self.created = deep_copy(await self.simulation.apply(self.case.resource, deep_copy(self.case.obj)))
        self.server.requests, self.server.at, self.server.edit = 0, -1 if at is None else at, self.replace
        await self.settle()
        requests, self.server.at = self.server.requests, -1
        if at is not None and not self.is_replaced:
            self.replace()
        await self.settle()
        for resource, child in self.everything():  # that nobody has adopted
            if (owner := controller_of(child)) is not None and owner["uid"] not in self.uids():
                self.server._remove(resource, child)
        await self.settle()
        return requests

    def replace(self) -> None:
        author, self.server.author = self.server.author, None
        before = self.owner
        self.server._remove(self.case.resource, before)
        for resource, child in self.everything():
            if uid_of(before) not in [owner.get("uid") for owner in owner_refs(child)]:
                continue
            if self.cascade == "Foreground":
                self.server._remove(resource, child)
            elif self.cascade == "Orphan":
                metadata = {key: value for key, value in child["metadata"].items() if key != "ownerReferences"}
                self.server.put(resource, {**child, "metadata": metadata})
        metadata = {**self.created["metadata"], "uid": "another"}
        self.server.put(self.case.resource, {**self.created, "metadata": metadata})
        self.server.author, self.is_replaced = author, True

    async def settle(self) -> None:
        """Lets everything become ready; a write that met a conflict is tried again."""
        names = [controller.name for controller in self.simulation.controllers]
        await self.simulation.settle_ready()
        while crashes := self.simulation.crashes:
            self.simulation.crashes = []
            for crash in crashes:
                assert isinstance(crash.error, Conflict)
                self.simulation._pending[names.index(crash.controller), crash.key] = None
            await self.simulation.settle_ready()

    def everything(self) -> list[tuple[Resource, Object]]:
        return [(resource, obj) for resource in list(self.objects._objects) for obj in self.objects.list(resource)]

    def uids(self) -> set[str]:
        return {uid_of(obj) for _, obj in self.everything()}

    def picture(self) -> dict[tuple[str, str, str], Any]:
        """What is there, without what has to differ: versions, times, keys, and other uids than the owner's."""
        uid = uid_of(self.owner)
        return {
            (str(resource), namespace_of(obj), name_of(obj)): dict(_plain(obj, uid, but=resource == SECRETS))
            for resource, obj in self.everything()
        }


_DIFFERENT: Final = ("resourceVersion", "generation", "observedGeneration", "managedFields")


def _plain(obj: Object, uid: str, *, but: bool) -> Iterator[tuple[str, Any]]:
    for key, value in obj.items():
        if key in _DIFFERENT or key.endswith(("Time", "Timestamp")) or value == "" or (but and key == "data"):
            continue
        if key == "uid":
            yield key, value == uid
        elif isinstance(value, dict):
            yield key, dict(_plain(value, uid, but=False))
        elif isinstance(value, list):
            yield key, [dict(_plain(each, uid, but=False)) if isinstance(each, dict) else each for each in value]
        else:
            yield key, value


@pytest.mark.parametrize("case", CASES)
async def test_it_ends_as_one_that_was_created_once(case: str) -> None:
    fresh = World(await simulation_of(CASES[case]), CASES[case], "")
    requests = await fresh.live(at=None)
    moments = [(step, CASCADES[step % len(CASCADES)]) for step in range(0, requests, requests // MOST_STEPS + 1)]
    for step, cascade in (*moments, *((requests, cascade) for cascade in CASCADES)):
        world = World(await simulation_of(CASES[case]), CASES[case], cascade)
        await world.live(at=step)
        assert world.picture() == fresh.picture(), f"replaced at request {step} of {requests}, {cascade}"
        assert world.owner["status"].get("observedGeneration", 1) == world.owner["metadata"]["generation"]
        assert not [event for event in world.simulation.events.recorded if "NotReady" in event.reason]

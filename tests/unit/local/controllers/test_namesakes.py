"""Objects deleted and created again before a controller missed them: what the first left is not the second's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.manual_clock import ManualClock

from isvc.insight.simulation.kinds import BY_PATH
from isvc.insight.simulation.server import MemoryServer
from isvc.insight.simulation.simulation import KUBERNETES, Events, Memory
from isvc.kube.conditions import condition_of
from isvc.kube.objects import Key, Object, dig, finalizers_of
from isvc.kube.owners import controller_ref, is_controlled_by
from isvc.kube.resource import (
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    JOBS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICES,
    Resource,
)
from isvc.local.controllers import claims, endpoints
from isvc.local.controllers.endpoints import slice_of
from isvc.local.controllers.jobs import controller as jobs
from isvc.local.controllers.jobs.tally import FINALIZER
from isvc.local.controllers.leader_worker_sets import controller as leader_worker_sets
from isvc.local.controllers.leader_worker_sets.pods import deployment_of
from isvc.local.knative import revisions
from isvc.local.knative.kinds import REVISIONS, deployment_name
from isvc.local.node.pods.ports import PORTS_ANNOTATION
from isvc.serving.thirdparty import LEADER_WORKER_SETS
from isvc.toolkit.client import Client
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller

KEY = Key("ns", "it")
GOING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


class World:
    """A controller, and what it reads and writes."""

    def __init__(self) -> None:
        self.objects, clock = Memory(), ManualClock()
        server = MemoryServer(self.objects, clock, KUBERNETES)
        server.admission = self
        self.context = Context(Client(server), self.objects, Events(), clock)

    async def admit(self, resource: Resource, new: Object, old: Object | None = None) -> Object:
        return new

    def put(self, resource: Resource, name: str = KEY.name, uid: str = "second", **fields: Any) -> Object:
        given = {"name": name, "namespace": KEY.namespace if resource.namespaced else "", "uid": uid, "generation": 1}
        made = resource.typed({**fields, "metadata": {**given, **(fields.get("metadata") or {})}})
        self.objects.put(resource, made)
        return made

    async def reconcile(self, controller: Controller) -> None:
        self.objects.declare(*controller.reads)
        await controller.reconcile(KEY)

    def get(self, resource: Resource, name: str = KEY.name) -> Object | None:
        return self.objects.get(resource, name, KEY.namespace)


@pytest.fixture
def world() -> World:
    return World()


def first(second: Object) -> Object:
    """The one that had the name before."""
    return {**second, "metadata": {**second["metadata"], "uid": "first"}}


def owned_by(owner: Object, **metadata: Any) -> Object:
    return {"ownerReferences": [controller_ref(owner)], **metadata}


async def test_pods_of_a_job_that_is_gone_are_let_go(world):
    controller = jobs.controller(world.context)
    world.objects.declare(*controller.reads)
    job = world.put(JOBS, spec={"suspend": True, "template": {"spec": {}}})
    left = {**owned_by(first(job)), "finalizers": [FINALIZER], **GOING}
    world.put(PODS, "left", "pod", metadata=left)
    world.put(PODS, "own", "other", metadata={**owned_by(job), "finalizers": [FINALIZER]})
    await controller.reconcile(KEY)
    assert world.get(PODS, "left") is None


async def test_a_volume_goes_when_the_claim_that_it_was_bound_to_has_gone(world):
    reference = {"namespace": KEY.namespace, "name": KEY.name}
    world.put(PERSISTENT_VOLUME_CLAIMS, spec={"volumeName": "next"}, status={"phase": "Bound"})
    for name, uid, metadata in (("left", "first", GOING), ("used", "second", GOING), ("next", "first", {})):
        finalized = {**metadata, "finalizers": [claims.VOLUME_PROTECTION]}
        spec = {"claimRef": {**reference, "uid": uid}}
        world.put(PERSISTENT_VOLUMES, name, name, metadata=finalized, spec=spec, status={"phase": "Bound"})
    await world.reconcile(claims.controller(world.context))
    assert world.objects.get(PERSISTENT_VOLUMES, "left") is None
    assert finalizers_of(world.objects.get(PERSISTENT_VOLUMES, "used"))
    assert dig(world.objects.get(PERSISTENT_VOLUMES, "next"), "spec", "claimRef", "uid") == "second"


async def test_a_revision_is_not_ready_by_the_deployment_of_another(world, monkeypatch):
    """What it once was is not withdrawn while pods start, so it would be ready without any."""
    monkeypatch.setitem(BY_PATH, (REVISIONS.group, REVISIONS.version, REVISIONS.plural), REVISIONS)
    controller = revisions.controller(world.context)
    world.objects.declare(*controller.reads)
    revision = world.put(REVISIONS, spec={"containers": [{"name": "c", "image": "i"}]})
    ready = {"spec": {"replicas": 1}, "status": {"readyReplicas": 1}}
    world.put(DEPLOYMENTS, deployment_name(KEY.name), "d", metadata=owned_by(first(revision)), **ready)
    await controller.reconcile(KEY)
    said = condition_of(world.get(REVISIONS), "ResourcesAvailable")
    assert (said["status"], said["reason"]) == ("False", "NotOwned")


async def test_a_leader_worker_set_takes_over_the_deployment_of_another(world):
    container = {"name": "main", "image": "vllm/vllm-openai:v1"}
    spec = {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": {"containers": [container]}}}}
    worker_set = world.put(LEADER_WORKER_SETS, spec=spec)
    world.objects.put(DEPLOYMENTS, deployment_of(first(worker_set)))
    await world.reconcile(leader_worker_sets.controller(world.context))
    assert is_controlled_by(world.get(DEPLOYMENTS), "second")


async def test_a_service_takes_over_the_endpoints_of_another(world):
    """Whether they wait for the garbage collector, or nobody owns them since `kubectl delete --cascade=orphan`."""
    controller = endpoints.controller(world.context)
    world.objects.declare(*controller.reads)
    service = world.put(SERVICES, spec={"selector": {"app": "a"}, "ports": [{"port": 80}]})
    pods = [
        world.put(
            PODS,
            name,
            name,
            metadata={"labels": {"app": "a"}, "annotations": {PORTS_ANNOTATION: json.dumps({"80": 41})}},
            spec={},
            status={"phase": "Running", "podIP": "127.0.0.1"},
        )
        for name in ("here", "orphaned", "gone")
    ]
    slices = [slice_of(first(service), pod) or {} for pod in pods]
    del slices[1]["metadata"]["ownerReferences"], slices[2]["metadata"]["ownerReferences"]
    for each in slices:
        each["metadata"]["resourceVersion"] = "1"
        world.objects.put(ENDPOINT_SLICES, each)
    world.objects.remove(PODS, "gone", KEY.namespace)
    await controller.reconcile(KEY)
    left = world.objects.list(ENDPOINT_SLICES)
    assert [dig(each, "endpoints", 0, "targetRef", "name") for each in left] == ["here", "orphaned"]
    assert all(is_controlled_by(each, "second") for each in left)

"""When a Deployment is looked at again because of its deadline: while it makes progress, and no longer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.manual_clock import ManualClock

from isvc.kube.objects import Key, Object
from isvc.kube.patch import merge_patch
from isvc.kube.resource import DEPLOYMENTS, REPLICA_SETS
from isvc.local.controllers.deployments.controller import controller
from isvc.local.controllers.rollout import REVISION
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller

TEMPLATE: Object = {"metadata": {"labels": {"app": "iris"}}, "spec": {"containers": []}}


class Objects(MemoryReader):
    """Objects in memory, which are patched there, too."""

    async def patch(self, resource: Any, name: str, patch: Object, namespace: str, **_: Any) -> Object:
        live = self.get(resource, name, namespace)
        assert live is not None
        patched: Object = merge_patch.apply(live, patch)
        return patched

    def note(self, resource: Any, obj: Object, **_: Any) -> None:
        self.put(resource, obj)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def deployments(objects: Any, clock: ManualClock) -> Controller:
    made = controller(Context(objects, objects, objects, clock))
    objects.declare(*made.reads)
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    spec = {"replicas": 1, "strategy": rolling, "progressDeadlineSeconds": 600, "template": TEMPLATE}
    spec |= {"selector": {"matchLabels": {"app": "iris"}}}
    metadata = {"name": "iris", "namespace": "ns", "uid": "d", "generation": 1, "annotations": {REVISION: "1"}}
    objects.put(DEPLOYMENTS, {"metadata": metadata, "spec": spec})
    return made


def replica_set(*, ready: int) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "iris", "uid": "d", "controller": True}
    annotations = {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "1",
        "deployment.kubernetes.io/max-replicas": "2",
    }
    metadata: Object = {"name": "iris-1", "namespace": "ns", "uid": "r", "ownerReferences": [owner]}
    metadata |= {"annotations": annotations, "labels": {"app": "iris"}}
    counts = dict.fromkeys(("readyReplicas", "availableReplicas"), ready)
    status = {"replicas": 1, "observedGeneration": 1, **counts}
    return {"metadata": metadata, "spec": {"replicas": 1, "template": TEMPLATE}, "status": status}


async def work(deployments: Controller) -> None:
    """Has the queue worked as a worker does."""
    key = await deployments.queue.take()
    result = await deployments.reconcile(key)
    deployments.queue.done(key)
    if result is not None and result.requeue_after is not None:
        deployments.queue.add_after(key, result.requeue_after, lapses=result.lapses)


@pytest.mark.parametrize("is_available", [False, True], ids=["it makes progress", "it is available"])
async def test_its_deadline_brings_it_back_only_while_it_makes_progress(objects, deployments, clock, is_available):
    objects.put(REPLICA_SETS, replica_set(ready=0))
    deployments.queue.add(Key("ns", "iris"))
    await work(deployments)
    if is_available:
        objects.put(REPLICA_SETS, replica_set(ready=1))
        deployments.queue.add(Key("ns", "iris"))
        await work(deployments)
    clock.advance(700)
    deployments.queue.tick()
    assert len(deployments.queue) == (0 if is_available else 1)

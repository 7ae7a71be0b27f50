"""Which Services and pools have requests wait after a start, and until when."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import until

from isvc.kube.objects import Key, Object
from isvc.kube.resource import ENDPOINT_SLICES, PODS, SERVICE_NAME_LABEL, SERVICES
from isvc.local.gateway.processor.lines import Unavailable
from isvc.local.gateway.routes.rules import Target
from isvc.local.knative.activator import Activator
from isvc.local.returning import Returning
from isvc.serving.thirdparty import INFERENCE_POOLS
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.clock import SystemClock

IRIS = Key("default", "iris")


class Objects(MemoryReader):
    """Objects in memory, of which subscribers are told."""

    def __init__(self) -> None:
        super().__init__()
        self._handlers: list[tuple[Any, Any]] = []

    def declare(self, *given: Any) -> None:
        super().declare(*given[1:])

    def subscribe(self, resource: Any, handler: Any, *, before: bool = True) -> None:
        self._handlers.append((resource, handler))

    def tell(self, resource: Any, before: Object | None, after: Object | None) -> None:
        for subscribed, handler in self._handlers:
            if subscribed == resource:
                handler(before, after)

    def change(self, port: int | None, *, ready: bool = True) -> None:
        """Changes the one slice of the Service."""
        metadata = {"name": "iris-1", "namespace": "default", "labels": {SERVICE_NAME_LABEL: "iris"}}
        endpoint = {"addresses": ["127.0.0.1"], "conditions": {"ready": ready}}
        after: Object = {"metadata": metadata, "ports": [{"name": "http", "port": port}], "endpoints": [endpoint]}
        before = self.get(ENDPOINT_SLICES, "iris-1", "default")
        self.put(ENDPOINT_SLICES, after)
        self.tell(ENDPOINT_SLICES, before, after)


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def activator(objects: Any) -> Activator:
    backends = SimpleNamespace(has=lambda target: True, members=lambda name: SimpleNamespace(ready=()))
    gateway: Any = SimpleNamespace(
        processor=SimpleNamespace(),
        backends=backends,
        publisher=SimpleNamespace(),
        target_changed=lambda target: None,
        pools=SimpleNamespace(endpoints=lambda pool: ()),
    )
    return Activator(objects, gateway, SystemClock())


@pytest.fixture
def returning(objects: Any, activator: Activator) -> Returning:
    found = Returning(objects, activator)
    spec = {"ports": [{"name": "http", "port": 80}], "selector": {"app": "iris"}}
    objects.put(SERVICES, {"metadata": {"name": "iris", "namespace": "default"}, "spec": spec})
    return found


async def test_requests_wait_until_a_pod_is_back(objects, activator, returning):
    objects.change(1001)  # as it was when `isvc up` ended
    objects.change(1001, ready=False)
    returning.begin()
    assert activator.line(Target(IRIS)) is not None
    objects.change(1002, ready=False)
    assert activator.line(Target(IRIS)) is not None
    objects.change(1002)
    assert activator.line(Target(IRIS)) is None


async def test_nobody_waits_for_what_is_back_before_the_gateway_is_open(objects, activator, returning):
    objects.change(1001)
    objects.change(1002)
    returning.begin()
    assert activator.line(Target(IRIS)) is None


@pytest.mark.parametrize(("port", "ready"), [(None, True), (1001, False)], ids=["simulated", "not ready before"])
async def test_nobody_waits_for_what_was_not_there(objects, activator, returning, port, ready):
    objects.change(port, ready=ready)
    returning.begin()
    assert activator.line(Target(IRIS)) is None


async def test_the_line_of_one_who_sleeps_is_left_to_whoever_opened_it(objects, activator, returning):
    objects.change(1001)
    returning.begin()
    sleeps = activator.open_line(IRIS, 80, lambda key: None)
    objects.change(1002)
    assert activator.line(Target(IRIS)) is sleeps


async def test_after_a_while_requests_are_answered_with_the_reason(objects, activator, returning):
    objects.change(1001)
    returning.begin()
    returning._give_up()
    assert activator.line(Target(IRIS)) is None


def pod(app: str = "chat", name: str = "1", *, ready: bool = False, waiting: str = "") -> Object:
    metadata = {"name": f"{app}-{name}", "namespace": "default", "labels": {"app": app}, "uid": name}
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    state = {"waiting": {"reason": waiting}} if waiting else {"running": {}}
    status = {"conditions": [condition], "containerStatuses": [{"name": "server", "state": state}]}
    return {"metadata": metadata, "spec": {"containers": []}, "status": status}


POOL = {"selector": {"matchLabels": {"app": "chat"}}, "targetPorts": [{"number": 8000}]}
CHAT = Target(Key("default", "chat"), INFERENCE_POOLS)


@pytest.mark.parametrize("app", ["iris", "chat"])
async def test_who_waits_is_told_when_all_pods_fail(objects, activator, returning, app):
    objects.put(INFERENCE_POOLS, {"metadata": {"name": "chat", "namespace": "default"}, "spec": POOL})
    objects.tell(PODS, None, pod("chat", ready=True))
    objects.change(1001)
    returning.begin()
    target = Target(IRIS) if app == "iris" else CHAT
    line = activator.line(target)
    assert line is not None
    waiting = asyncio.create_task(line.admit().__aenter__())
    await until(lambda: line.has_waiting)
    for name in ("1", "2"):
        objects.put(PODS, pod(app, name))
    objects.put(PODS, failing := pod(app, "1", waiting="CrashLoopBackOff"))
    objects.tell(PODS, None, failing)
    assert line.has_waiting, "the other pod may only be slow"
    objects.put(PODS, failing := pod(app, "2", waiting="ErrImageNeverPull"))
    objects.tell(PODS, None, failing)
    with pytest.raises(Unavailable) as told:
        await waiting
    assert told.value.reason == f"all pods of default/{app} fail"
    assert told.value.has_waited, "which has the cause told as well"
    assert activator.line(target) is None
    assert activator.line(CHAT if app == "iris" else Target(IRIS)) is not None


async def test_a_pod_may_fail_before_requests_wait(objects, activator, returning):
    objects.change(1001)
    objects.put(PODS, failing := pod("iris", waiting="CreateContainerError"))
    objects.tell(PODS, pod("iris"), failing)
    returning.begin()
    assert activator.line(Target(IRIS)) is None


@pytest.mark.parametrize(("was_ready", "waits"), [(True, True), (False, False)], ids=["ready before", "not ready"])
async def test_requests_for_a_pool_wait_if_it_had_members(objects, activator, returning, was_ready, waits):
    objects.put(INFERENCE_POOLS, {"metadata": {"name": "chat", "namespace": "default"}, "spec": POOL})
    objects.tell(PODS, None, pod(ready=was_ready))  # as it was when `isvc up` ended
    objects.tell(PODS, pod(ready=was_ready), pod(ready=not was_ready))
    returning.begin()
    assert (activator.line(CHAT) is not None) == waits
    returning._give_up()
    assert activator.line(CHAT) is None

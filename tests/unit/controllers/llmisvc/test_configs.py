"""A configuration says who uses it, also when nobody does any more, and the more users it has the less often."""

from __future__ import annotations

from typing import Any

import pytest
from tests.manual_clock import ManualClock

from isvc.api.resources import LLM_INFERENCE_SERVICE_CONFIGS, LLM_INFERENCE_SERVICES
from isvc.controllers.llmisvc.config.kind import (
    FINALIZER,
    IN_USE,
    LONGEST_REST,
    make_kind,
    status_of,
)
from isvc.controllers.llmisvc.config.users import Users
from isvc.controllers.llmisvc.config.watches import controller
from isvc.controllers.llmisvc.usage import CONFIG_INDEX, config_indexer
from isvc.engine.reconciler import Reconciler
from isvc.kube.conditions import find
from isvc.kube.errors import Invalid
from isvc.kube.objects import Key, Object
from isvc.kube.patch import merge_patch
from isvc.kube.resource import Resource
from isvc.serving.environment import Environment
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.context import Context
from isvc.toolkit.reads import Read

SMALL: Object = {"metadata": {"name": "small", "namespace": "a", "finalizers": [FINALIZER]}}
PRESET: Object = {"metadata": {"name": "kserve-config-llm-template", "namespace": "kserve", "finalizers": [FINALIZER]}}
INDEXERS = {CONFIG_INDEX: config_indexer("kserve-")}


def service(name: str, *applied: tuple[str, str]) -> Object:
    configs = [{"namespace": namespace, "name": config} for namespace, config in applied]
    return {"metadata": {"name": name, "namespace": "a"}, "spec": {}, "status": {"appliedConfigs": configs}}


class Server(MemoryReader):
    """Objects that are read from memory, and the statuses that are written over them."""

    def __init__(self, *services: Object) -> None:
        configs = [(LLM_INFERENCE_SERVICE_CONFIGS, config) for config in (SMALL, PRESET)]
        known = [(LLM_INFERENCE_SERVICES, each) for each in services]
        super().__init__([*configs, *known], reads=[Read(LLM_INFERENCE_SERVICES, indexers=INDEXERS)])
        self.written: list[Object] = []

    async def update(self, resource: Resource, obj: Object, **options: Any) -> Object:
        self.written.append(obj["status"])
        self.put(resource, obj)
        return obj

    async def patch(self, resource: Resource, name: str, patch: Object, namespace: str = "", **options: Any) -> Object:
        found: Object = merge_patch.apply(self.get(resource, name, namespace), patch)
        self.put(resource, found)
        return found

    def note(self, *args: Any, **kwargs: Any) -> None:
        """It is in memory already."""

    def event(self, *args: Any) -> None:
        """Nobody listens here."""

    def for_component(self, source: str) -> Server:
        return self


def context_of(server: Any, clock: ManualClock | None = None) -> Context:
    return Context(server, server, server, clock or ManualClock())


def reconciler_of(server: Any, clock: ManualClock | None = None) -> Reconciler:
    return Reconciler(make_kind(server, Environment()), context_of(server, clock))


def test_a_configuration_that_is_no_longer_used_is_looked_at_when_the_status_has_caught_up() -> None:
    before = service("user", ("a", "small"), ("kserve", "kserve-config-llm-template"))
    after = service("user", ("kserve", "kserve-config-llm-template"))
    server = Server(before)
    made = controller(context_of(server), Environment())
    (watch,) = (each for each in made.watches if each.resource == LLM_INFERENCE_SERVICES)
    assert Key.of(SMALL) in set(watch.keys(before, after))
    assert set(watch.keys(after, after)) == set(), "what changes nothing reaches nobody"
    assert in_use(server) == "True"
    server.put(LLM_INFERENCE_SERVICES, after)
    assert in_use(server) == "False"


def in_use(server: Any) -> str:
    users = Users(server, "kserve", "kserve-").of(SMALL)
    condition = find(status_of(SMALL, users, "2026-01-01T00:00:00Z")["conditions"], IN_USE)
    assert condition is not None
    return str(condition["status"])


@pytest.mark.parametrize("users", [1, 20, 1000])
async def test_the_more_users_a_configuration_has_the_longer_its_status_waits(users: int) -> None:
    server, clock = Server(*(service(f"user-{number}") for number in range(users))), ManualClock()
    reconciler = reconciler_of(server, clock)
    assert await reconciler.reconcile(Key.of(PRESET)) is None
    server.put(LLM_INFERENCE_SERVICES, service("another"))
    later = await reconciler.reconcile(Key.of(PRESET))
    assert later is not None
    assert later.requeue_after is not None
    assert len(server.written) == 1
    assert min(users / 10, LONGEST_REST) <= later.requeue_after <= LONGEST_REST
    clock.advance(later.requeue_after)
    assert await reconciler.reconcile(Key.of(PRESET)) is None
    assert [len(status["referencedBy"]) for status in server.written] == [users, users + 1]


class Strict(Server):
    """Refuses every change of a spec."""

    async def patch(self, resource: Resource, name: str, patch: Object, namespace: str = "", **options: Any) -> Object:
        if "spec" in patch:
            raise Invalid("refused by a rule that is younger than the configuration")
        return await super().patch(resource, name, patch, namespace, **options)


async def test_a_configuration_whose_spec_cannot_be_changed_gets_its_finalizer_all_the_same() -> None:
    server = Strict()
    old: Object = {"metadata": {"name": "old", "namespace": "a", "resourceVersion": "1"}, "spec": {"baseRefs": []}}
    server.put(LLM_INFERENCE_SERVICE_CONFIGS, old)
    await reconciler_of(server).reconcile(Key("a", "old"))
    written = server.get(LLM_INFERENCE_SERVICE_CONFIGS, "old", "a")
    assert written is not None
    assert (written["metadata"]["finalizers"], written["spec"]) == ([FINALIZER], {"baseRefs": []})


@pytest.mark.parametrize(
    ("given", "spelled"),
    [
        (
            {
                "kvCacheOffloading": {"cpu": "1.5Gi"},
                "replicas": 0,
                "template": {
                    "containers": [{"name": "main", "args": [], "resources": {"limits": {"cpu": 2}}}],
                    "hostNetwork": False,
                },
            },
            {
                "kvCacheOffloading": {"cpu": "1536Mi"},
                "replicas": 0,
                "template": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "2"}}}]},
            },
        ),
        (
            {"router": {"scheduler": {"pool": {"spec": {"selector": {"matchLabels": {}}}}}}, "baseRefs": []},
            {"router": {"scheduler": {"pool": {"spec": {"selector": {"matchLabels": {}}}}}}},
        ),
        (
            {"kvCacheOffloading": {"cpu": "much"}, "baseRefs": []},
            {"kvCacheOffloading": {"cpu": "much"}, "baseRefs": []},
        ),
    ],
)
async def test_a_new_configuration_is_spelled_as_it_would_be_written_down_again(given: Object, spelled: Object) -> None:
    server = Server()
    new: Object = {"metadata": {"name": "new", "namespace": "a", "resourceVersion": "1"}, "spec": given}
    server.put(LLM_INFERENCE_SERVICE_CONFIGS, new)
    await reconciler_of(server).reconcile(Key("a", "new"))
    written = server.get(LLM_INFERENCE_SERVICE_CONFIGS, "new", "a")
    assert written is not None
    assert (written["metadata"]["finalizers"], written["spec"]) == ([FINALIZER], spelled)

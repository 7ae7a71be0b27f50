"""What the engine deletes, and what it never does."""

from __future__ import annotations

import pytest
from tests.unit.engine.server import OWNER, Memory, config, plan, result

from isvc.engine.apply import Engine
from isvc.engine.outcome import Deleted, Rejected
from isvc.engine.plan import Child, Hold, Part, Plan, Retire, Want
from isvc.kube.errors import Conflict, Forbidden, NotFound
from isvc.kube.objects import deep_copy
from isvc.kube.resource import CONFIG_MAPS, SECRETS, SERVICES


async def test_a_refusal_is_reported_and_nothing_is_pruned(engine, server):
    await engine.apply(OWNER, plan(config("old")))
    server.fails["POST new"] = Forbidden("exceeded quota")
    outcome = await engine.apply(OWNER, plan(config("new")))
    assert isinstance(result(outcome, "new"), Rejected)
    assert outcome.refusal.part == "all"
    assert outcome.refusal.result.message == "exceeded quota"
    assert (CONFIG_MAPS, "old") in server.objects


async def test_parts_before_a_refused_one_are_pruned(engine, server):
    service = Child(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "ns"}})
    await engine.apply(OWNER, plan(config("old"), service))
    server.fails["POST refused"] = Forbidden("exceeded quota")
    done = Part("done", Want((config("new"),)), frozenset({CONFIG_MAPS}))
    refused = Part("refused", Want((config("refused"),)), frozenset())
    outcome = await engine.apply(OWNER, Plan((done, refused, Part("last", Retire(), frozenset({SERVICES})))))
    assert outcome.refusal.part == "refused"
    assert {name for _, name in server.objects} == {"new", "s"}


async def test_new_children_come_before_old_ones_go(engine, server):
    await engine.apply(OWNER, plan(config("old")))
    server.taken_requests()
    outcome = await engine.apply(OWNER, plan(config("new")))
    assert isinstance(result(outcome, "old"), Deleted)
    assert server.taken_requests() == ["POST ConfigMap new", "DELETE ConfigMap old"]


async def test_pruning_keeps_to_declared_kinds_and_names_and_to_what_we_control(engine, server):
    secret = Child(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "ns"}})
    await engine.apply(OWNER, plan(config("a"), config("b"), secret))
    await server.create(CONFIG_MAPS, config("foreign").manifest)
    await engine.apply(OWNER, plan(names=frozenset({"a"})))
    assert {name for _, name in server.objects} == {"b", "s", "foreign"}
    await engine.apply(OWNER, Plan((Part("all", Retire(), frozenset({CONFIG_MAPS})),)))
    assert {name for _, name in server.objects} == {"s", "foreign"}


async def test_what_is_held_stays_also_when_another_part_prunes_the_kind(engine, server):
    await engine.apply(OWNER, plan(config("held"), config("gone")))
    held = Part("held", Hold("Waiting", "no runtime"), frozenset({CONFIG_MAPS}), frozenset({"held"}))
    other = Part("other", Want(()), frozenset({CONFIG_MAPS, SERVICES}))
    await engine.apply(OWNER, Plan((held, other)))
    assert {name for _, name in server.objects} == {"held"}
    await engine.apply(OWNER, Plan((Part("held", Hold("Waiting", ""), frozenset({CONFIG_MAPS})), other)))
    assert {name for _, name in server.objects} == {"held"}


async def test_deleting_something_already_gone_is_fine_and_a_successor_is_spared(engine, server):
    await engine.apply(OWNER, plan(config("a")))
    server.fails["DELETE a"] = NotFound("a")
    assert isinstance(result(await engine.apply(OWNER, plan()), "a"), Deleted)
    before = deep_copy(server.objects[CONFIG_MAPS, "a"])
    server.objects[CONFIG_MAPS, "a"]["metadata"]["uid"] = "successor"
    server.peek = lambda resource, name: before
    with pytest.raises(Conflict):
        await Engine(server, Memory(server)).apply(OWNER, plan())
    assert (CONFIG_MAPS, "a") in server.objects

"""What the engine writes, and that it writes no more than that."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.engine.server import OWNER, Memory, config, live_of, plan, result

from isvc.engine.apply import Engine
from isvc.engine.events import child_events
from isvc.engine.outcome import Created, Taken, Unchanged, Updated
from isvc.engine.plan import Child, Late
from isvc.engine.policies import DATA, WORKLOAD
from isvc.kube.builtin import complete
from isvc.kube.errors import AlreadyExists, Conflict, Forbidden, InternalError
from isvc.kube.objects import name_of, uid_of
from isvc.kube.owners import controller_of, is_controlled_by
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS


async def test_a_child_is_created_once_and_then_left_in_peace(engine, server):
    first = await engine.apply(OWNER, plan(config("a", x="1")))
    assert isinstance(result(first, "a"), Created)
    controller = controller_of(live_of(first, "a"))
    assert controller is not None
    assert controller["uid"] == "owner"
    second = await engine.apply(OWNER, plan(config("a", x="1")))
    assert isinstance(result(second, "a"), Unchanged)
    assert server.taken_requests() == ["POST ConfigMap a"]


async def test_another_engine_finds_the_same_and_writes_nothing(engine, server):
    await engine.apply(OWNER, plan(config("a", x="1")))
    server.taken_requests()
    again = await Engine(server, Memory(server)).apply(OWNER, plan(config("a", x="1")))
    assert isinstance(result(again, "a"), Unchanged)
    assert server.taken_requests() == []


async def test_a_new_manifest_is_an_update_and_an_edit_a_repair(engine, server):
    await engine.apply(OWNER, plan(config("a", x="1", y="2")))
    updated = result(await engine.apply(OWNER, plan(config("a", x="3"))), "a")
    assert isinstance(updated, Updated)
    assert updated.live["data"] == {"x": "3"}
    assert not updated.repaired
    server.edit(CONFIG_MAPS, "a")["data"]["stray"] = "9"
    repaired = result(await engine.apply(OWNER, plan(config("a", x="3"))), "a")
    assert repaired.repaired
    assert repaired.live["data"] == {"x": "3"}


async def test_a_manifest_that_spells_out_a_default_is_no_update(engine, server):
    server.admit = lambda obj: {**obj, "data": {"added": "by a webhook", **obj["data"]}}
    await engine.apply(OWNER, plan(config("a", x="1")))
    for _ in range(2):
        again = await engine.apply(OWNER, plan(config("a", x="1", added="by a webhook")))
        assert isinstance(result(again, "a"), Unchanged)
    assert server.taken_requests() == ["POST ConfigMap a", "PUT ConfigMap a"]


async def test_what_a_webhook_insists_on_costs_a_dry_run_after_a_restart_and_no_write(engine, server):
    def admit(obj):
        obj["data"]["added"] = "by a webhook"
        return obj

    server.admit = admit
    await engine.apply(OWNER, plan(config("a", x="1")))
    server.taken_requests()
    assert isinstance(result(await engine.apply(OWNER, plan(config("a", x="1"))), "a"), Unchanged)
    assert server.taken_requests() == []
    fresh = Engine(server, Memory(server))
    for _ in range(3):
        await fresh.apply(OWNER, plan(config("a", x="1")))
    assert server.taken_requests() == ["DRY-RUN ConfigMap a"]


async def test_what_we_asked_for_before_a_restart_and_no_longer_want_goes(engine, server):
    await engine.apply(OWNER, plan(config("a", x="1", y="2")))
    server.taken_requests()
    await Engine(server, Memory(server)).apply(OWNER, plan(config("a", x="1")))
    assert server.taken_requests() == ["DRY-RUN ConfigMap a", "PUT ConfigMap a"]
    assert server.objects[CONFIG_MAPS, "a"]["data"] == {"x": "1"}


async def test_a_child_that_the_cache_has_not_seen_is_compared_not_an_error(engine, server):
    await engine.apply(OWNER, plan(config("a", x="1")))
    server.unseen.add((CONFIG_MAPS, "a"))
    server.taken_requests()
    assert isinstance(result(await engine.apply(OWNER, plan(config("a", x="1"))), "a"), Unchanged)
    assert server.taken_requests() == ["GET ConfigMap a"]


async def test_an_update_that_changes_nothing_is_no_write_of_ours(server):
    """The version that it is answered with is of somebody else's write, which may be news."""

    def admit(obj):
        obj["data"] = {"x": "1"}
        return obj

    memory = Memory(server)
    engine = Engine(server, memory)
    server.admit = admit
    await engine.apply(OWNER, plan(config("a", x="1")))
    others = server.edit(CONFIG_MAPS, "a")
    assert isinstance(result(await engine.apply(OWNER, plan(config("a", x="2"))), "a"), Unchanged)
    assert "PUT ConfigMap a" in server.taken_requests()
    assert others["metadata"]["resourceVersion"] not in memory.own_writes


async def test_a_child_deleted_a_moment_ago_is_created(engine, server):
    await engine.apply(OWNER, plan(config("a", x="1")))
    gone = server.objects.pop((CONFIG_MAPS, "a"))
    server.peek = lambda resource, name: gone
    assert isinstance(result(await engine.apply(OWNER, plan(config("a", x="2"))), "a"), Created)


async def test_a_child_that_was_in_the_way_and_is_gone_again_is_no_refusal(engine, server):
    server.fails["POST a"] = AlreadyExists("it is there")
    with pytest.raises(Conflict):
        await engine.apply(OWNER, plan(config("a", x="1")))
    assert server.taken_requests() == ["POST ConfigMap a", "GET ConfigMap a"]
    assert isinstance(result(await engine.apply(OWNER, plan(config("a", x="1"))), "a"), Created)


async def test_a_child_that_somebody_deleted_is_a_repair(engine, server):
    assert not (await engine.apply(OWNER, plan(config("a", x="1")))).has_repaired
    del server.objects[CONFIG_MAPS, "a"]
    assert (await engine.apply(OWNER, plan(config("a", x="1")))).has_repaired


async def test_the_child_of_a_deleted_namesake_is_adopted_and_else_written_only_if_due(engine, server):
    child = replace(config("a", {"from": "before"}, x="1"), policy=DATA)
    await engine.apply(OWNER, plan(child))
    heir = {**OWNER, "metadata": {**OWNER["metadata"], "uid": "heir"}}
    server.taken_requests()
    again = replace(config("a", {"from": "now"}, x="1"), policy=DATA)
    outcome = await Engine(server, Memory(server)).apply(heir, plan(again))
    live = live_of(outcome, "a")
    assert outcome.has_repaired  # worth another look: nothing was known of it when this was planned
    assert is_controlled_by(live, "heir")
    assert live["metadata"]["labels"] == {"from": "before"}
    assert server.taken_requests() == ["PUT ConfigMap a"]


@pytest.mark.parametrize("labels", [{"of": "owner"}, {}])
async def test_an_orphan_that_is_like_the_child_is_adopted(engine, server, labels):
    """As `kubectl delete --cascade=orphan` leaves it."""
    orphan = config("a", labels, x="1").manifest
    await server.create(CONFIG_MAPS, {**orphan, "metadata": {**orphan["metadata"], "labels": {**labels, "own": "1"}}})
    outcome = await engine.apply(OWNER, plan(config("a", labels, x="1")))
    assert outcome.has_repaired
    assert is_controlled_by(live_of(outcome, "a"), "owner")
    assert server.taken_requests() == ["POST ConfigMap a", "PUT ConfigMap a"]


async def test_an_orphan_with_the_labels_of_the_child_is_brought_up_to_date(engine, server):
    await server.create(CONFIG_MAPS, config("a", {"of": "owner"}, x="before").manifest)
    live = live_of(await engine.apply(OWNER, plan(config("a", {"of": "owner"}, x="now"))), "a")
    assert (live["data"], is_controlled_by(live, "owner")) == ({"x": "now"}, True)


async def test_a_server_in_trouble_is_for_the_next_reconcile(engine, server):
    server.fails["POST a"] = InternalError("etcd is away")
    with pytest.raises(InternalError):
        await engine.apply(OWNER, plan(config("a", x="1")))


async def test_a_newer_version_is_a_conflict_for_the_next_reconcile(engine, server):
    await engine.apply(OWNER, plan(config("a", x="1")))
    server.fails["PUT a"] = Conflict("modified")
    with pytest.raises(Conflict):
        await engine.apply(OWNER, plan(config("a", x="2")))


@pytest.mark.parametrize("labels", [{"of": "owner"}, {}])
async def test_a_namesake_is_never_touched(engine, server, labels):
    foreign = await server.create(CONFIG_MAPS, config("a", x="1").manifest)
    outcome = await engine.apply(OWNER, plan(config("a", labels, x="2"), config("b")))
    assert isinstance(outcome.refusal.result, Taken)
    assert "ConfigMap a exists already" in outcome.refusal.result.message
    assert server.objects == {(CONFIG_MAPS, "a"): foreign}


async def test_an_edit_made_while_nobody_looked_is_undone(engine, server):
    """What is the default of some other field, or of another kind, is still an edit of this one."""
    container = {"name": "c", "image": "i:1"}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [container]}}}
    metadata = {"name": "a", "namespace": "ns"}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    server.admit = complete
    child = Child(DEPLOYMENTS, manifest, policy=WORKLOAD)
    await engine.apply(OWNER, plan(child))
    server.taken_requests()
    await Engine(server, Memory(server)).apply(OWNER, plan(child))
    assert server.taken_requests() == []
    server.edit(DEPLOYMENTS, "a")["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Always"
    await Engine(server, Memory(server)).apply(OWNER, plan(child))
    assert server.taken_requests() == ["DRY-RUN Deployment a", "PUT Deployment a"]
    live = server.objects[DEPLOYMENTS, "a"]
    assert live["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] == "IfNotPresent"


async def test_a_child_that_names_what_another_was_given_is_written_again_when_that_is_there(engine, server):
    outcome = await engine.apply(OWNER, plan(_names_uid_of("service"), config("service")))
    requests = ["POST ConfigMap certificate", "POST ConfigMap service", "PUT ConfigMap certificate"]
    assert server.taken_requests() == requests
    stored = server.objects[CONFIG_MAPS, "certificate"]
    assert stored["data"] == {"service": uid_of(live_of(outcome, "service"))}
    assert [event.reason for event in child_events(outcome)] == ["Created", "Updated"]


async def test_a_refusal_of_what_names_another_is_one_of_its_part(engine, server):
    server.fails["PUT certificate"] = Forbidden("not now")
    outcome = await engine.apply(OWNER, plan(_names_uid_of("service"), config("service")))
    assert outcome.refusal is not None
    assert outcome.refusal.child.name == "certificate"


async def test_nothing_is_written_again_for_what_was_there_before(engine, server):
    await engine.apply(OWNER, plan(config("service")))
    server.taken_requests()
    await engine.apply(OWNER, plan(_names_uid_of("service"), config("service")))
    assert server.taken_requests() == ["POST ConfigMap certificate"]


def _names_uid_of(name: str) -> Child:
    def fill(others):
        return {"data": {name_of(other): uid_of(other) for other in others}}

    return replace(config("certificate"), late=Late((config(name).key,), fill))

"""Entries in objects that several owners share: nobody's is lost, whoever is faster."""

from __future__ import annotations

import pytest
from tests.unit.engine.server import NAMESPACE, OWNER, config, result

from isvc.engine.outcome import Created, Rejected, Unchanged, Updated
from isvc.engine.plan import ChildKey, Edit, Part, Plan, Want
from isvc.kube.errors import Conflict, Forbidden
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS

KEY = ChildKey(CONFIG_MAPS, "list", NAMESPACE)


def enter(live: Object | None) -> Object | None:
    """Our entry, where it is missing; the list itself, where there is none."""
    if live is None:
        return config("list", mine="1").manifest
    return None if "mine" in (live.get("data") or {}) else {"data": {"mine": "1"}}


def plan(live: Object | None, change=enter) -> Plan:
    return Plan((Part("list", Want((), (Edit(KEY, change, live),))),))


async def test_an_entry_is_added_beside_those_of_others_and_then_left_in_peace(engine, server) -> None:
    live = await server.create(CONFIG_MAPS, config("list", theirs="1").manifest)
    server.taken_requests()
    outcome = await engine.apply(OWNER, plan(live))
    edited = result(outcome, "list")
    assert isinstance(edited, Updated)
    assert edited.live["data"] == {"theirs": "1", "mine": "1"}
    assert isinstance(result(await engine.apply(OWNER, plan(edited.live)), "list"), Unchanged)
    assert server.taken_requests() == ["PATCH ConfigMap list"]


async def test_an_entry_that_somebody_else_takes_out_again_counts_as_repaired(engine, server) -> None:
    live = await server.create(CONFIG_MAPS, config("list", theirs="1").manifest)
    first = result(await engine.apply(OWNER, plan(live)), "list")
    del server.edit(CONFIG_MAPS, "list")["data"]["mine"]
    again = result(await engine.apply(OWNER, plan(server.objects[CONFIG_MAPS, "list"])), "list")
    assert (first.repaired, again.repaired) == (False, True)


async def test_who_was_slower_looks_again_and_loses_nothing(engine, server) -> None:
    live = await server.create(CONFIG_MAPS, config("list", theirs="1").manifest)
    server.edit(CONFIG_MAPS, "list")["data"]["faster"] = "1"
    server.taken_requests()
    edited = result(await engine.apply(OWNER, plan(live)), "list")
    assert edited.live["data"] == {"theirs": "1", "faster": "1", "mine": "1"}
    assert server.taken_requests() == ["PATCH ConfigMap list", "GET ConfigMap list", "PATCH ConfigMap list"]


async def test_what_is_not_there_is_created_or_let_be(engine, server) -> None:
    assert (await engine.apply(OWNER, plan(None, lambda live: None))).results == {}
    assert isinstance(result(await engine.apply(OWNER, plan(None)), "list"), Created)
    created = server.objects[CONFIG_MAPS, "list"]
    assert "ownerReferences" not in created["metadata"], "nobody owns what all share"
    again = result(await engine.apply(OWNER, plan(None)), "list")
    assert isinstance(again, Unchanged), "somebody else had created it"


async def test_what_is_gone_meanwhile_is_created_anew(engine, server) -> None:
    live = await server.create(CONFIG_MAPS, config("list", theirs="1").manifest)
    del server.objects[CONFIG_MAPS, "list"]
    assert isinstance(result(await engine.apply(OWNER, plan(live)), "list"), Created)


async def test_a_refusal_is_reported_and_endless_conflicts_end(engine, server) -> None:
    live = await server.create(CONFIG_MAPS, config("list").manifest)
    server.fails["PATCH list"] = Forbidden("not yours")
    outcome = await engine.apply(OWNER, plan(live))
    assert outcome.refusal.child == KEY
    assert isinstance(outcome.refusal.result, Rejected)

    def contend(seen: Object | None) -> Object | None:
        server.edit(CONFIG_MAPS, "list")
        return {"data": {"mine": "1"}}

    with pytest.raises(Conflict):
        await engine.apply(OWNER, plan(live, contend))

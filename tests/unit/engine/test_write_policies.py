"""Which differences make an update due, and what an update leaves to others."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.engine.server import OWNER, Memory, config, plan, result

from isvc.engine.apply import Engine
from isvc.engine.outcome import Unchanged
from isvc.engine.plan import Child
from isvc.engine.policies import CREATE_ONLY, LABELS, WORKLOAD, WritePolicy
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS


async def test_ignored_fields_are_written_once(engine, server):
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "ns"}}
    child = Child(
        DEPLOYMENTS,
        {**manifest, "spec": {"replicas": 1, "paused": True}},
        policy=WritePolicy(ignore=("spec.replicas",)),
    )
    await engine.apply(OWNER, plan(child))
    server.edit(DEPLOYMENTS, "a")["spec"]["replicas"] = 5
    assert isinstance(result(await engine.apply(OWNER, plan(child)), "a", DEPLOYMENTS), Unchanged)
    child = Child(DEPLOYMENTS, {**manifest, "spec": {"replicas": 1}}, policy=WritePolicy(ignore=("spec.replicas",)))
    live = (await engine.apply(OWNER, plan(child))).live(DEPLOYMENTS, "a")
    assert live["spec"]["replicas"] == 5
    assert "paused" not in live["spec"]


async def test_a_key_with_dots_can_be_ignored(engine, server):
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "ns"}}

    def child(paused: bool) -> Child:
        template = {"template": {"metadata": {"annotations": {"ours": "1"}}}, "paused": paused}
        return Child(DEPLOYMENTS, {**manifest, "spec": template}, policy=WORKLOAD)

    await engine.apply(OWNER, plan(child(paused=True)))
    annotations = server.edit(DEPLOYMENTS, "a")["spec"]["template"]["metadata"]["annotations"]
    annotations["kubectl.kubernetes.io/restartedAt"] = "now"
    assert isinstance(result(await engine.apply(OWNER, plan(child(paused=True))), "a", DEPLOYMENTS), Unchanged)
    annotations["theirs"] = "2"
    live = (await engine.apply(OWNER, plan(child(paused=False)))).live(DEPLOYMENTS, "a")
    kept = live["spec"]["template"]["metadata"]["annotations"]
    assert kept == {"ours": "1", "kubectl.kubernetes.io/restartedAt": "now"}


async def test_labels_are_shared_ground(engine, server):
    await engine.apply(OWNER, plan(config("a", {"ours": "1", "old": "1"}, x="1")))
    metadata = server.edit(CONFIG_MAPS, "a")["metadata"]
    metadata["labels"]["theirs"] = "2"
    metadata["managedFields"] = [
        {"manager": "isvc", "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:ours": {}, "f:old": {}}}}}
    ]
    server.taken_requests()
    await engine.apply(OWNER, plan(config("a", {"ours": "1", "old": "1"}, x="1")))
    assert server.taken_requests() == []
    live = (await engine.apply(OWNER, plan(config("a", {"ours": "1"}, x="1")))).live(CONFIG_MAPS, "a")
    assert live["metadata"]["labels"] == {"ours": "1", "theirs": "2"}
    del server.edit(CONFIG_MAPS, "a")["metadata"]["labels"]["ours"]
    live = (await engine.apply(OWNER, plan(config("a", {"ours": "1"}, x="1")))).live(CONFIG_MAPS, "a")
    assert live["metadata"]["labels"] == {"ours": "1", "theirs": "2"}


async def test_labels_that_are_merely_required_go_with_the_next_update(engine, server):
    def child(labels, value):
        return replace(config("a", labels, x=value), policy=WritePolicy(compare=("data",), require=(LABELS,)))

    await engine.apply(OWNER, plan(child({"ours": "1", "old": "1"}, "1")))
    fields: Object = {"f:metadata": {"f:labels": {"f:ours": {}, "f:old": {}}}}
    server.edit(CONFIG_MAPS, "a")["metadata"]["managedFields"] = [{"manager": "isvc", "fieldsV1": fields}]
    server.taken_requests()
    await engine.apply(OWNER, plan(child({"ours": "1"}, "1")))
    assert server.taken_requests() == []
    live = (await engine.apply(OWNER, plan(child({"ours": "1"}, "2")))).live(CONFIG_MAPS, "a")
    assert live["metadata"]["labels"] == {"ours": "1"}


async def test_a_child_whose_labels_are_compared_sheds_those_of_others(engine, server):
    manifest = {**config("a").manifest}
    manifest["metadata"] = {**manifest["metadata"], "labels": {"ours": "1"}}
    exact = Child(CONFIG_MAPS, manifest, policy=WritePolicy(compare=("data", LABELS)))
    await engine.apply(OWNER, plan(exact))
    live = server.objects[CONFIG_MAPS, "a"]
    live["metadata"] |= {"labels": {"ours": "1", "theirs": "2"}, "resourceVersion": "99"}
    await engine.apply(OWNER, plan(exact))
    assert server.objects[CONFIG_MAPS, "a"]["metadata"]["labels"] == {"ours": "1"}
    server.taken_requests()
    await engine.apply(OWNER, plan(exact))
    assert server.taken_requests() == []


async def test_a_child_that_is_only_created_is_left_to_others(engine, server):
    child = replace(config("a", x="1"), policy=CREATE_ONLY)
    await engine.apply(OWNER, plan(child))
    server.edit(CONFIG_MAPS, "a")["data"] = {"theirs": "2"}
    server.taken_requests()
    for each in (engine, Engine(server, Memory(server))):
        await each.apply(OWNER, plan(replace(child, manifest=config("a", {"new": "label"}, x="3").manifest)))
    assert server.taken_requests() == []


async def test_the_labels_that_we_set_are_those_of_our_own_field_manager(server):
    server.field_manager = "another"
    engine = Engine(server, Memory(server))
    await engine.apply(OWNER, plan(config("a", {"ours": "1", "old": "1"}, x="1")))
    fields: Object = {"f:metadata": {"f:labels": {"f:ours": {}, "f:old": {}}}}
    server.edit(CONFIG_MAPS, "a")["metadata"]["managedFields"] = [{"manager": "another", "fieldsV1": fields}]
    live = (await engine.apply(OWNER, plan(config("a", {"ours": "1"}, x="1")))).live(CONFIG_MAPS, "a")
    assert live is not None
    assert live["metadata"]["labels"] == {"ours": "1"}

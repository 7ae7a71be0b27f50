"""The engine against objects in memory that behave as an API server does where it matters here."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isvc.engine.apply import Engine
from isvc.engine.outcome import ChildKey, Created, Deleted, Outcome, Rejected, Taken, Unchanged, Updated
from isvc.engine.plan import Child, Hold, Part, Plan, Retire, Want
from isvc.engine.policies import CREATE_ONLY, DATA, LABELS, WORKLOAD, WritePolicy
from isvc.kube.builtin import completed
from isvc.kube.errors import AlreadyExists, Conflict, Forbidden, InternalError, NotFound
from isvc.kube.objects import Key, Object, deep_copy, name_of, uid_of
from isvc.kube.owners import controller_of, is_controlled_by
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SECRETS, SERVICES, Resource

OWNER: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "boss", "namespace": "ns", "uid": "owner"},
}


class Server:
    """Objects by resource and name; also the memory of the engine, which may lag behind."""

    def __init__(self) -> None:
        self.field_manager = "isvc"
        self.objects: dict[tuple[Resource, str], dict] = {}
        self.requests: list[str] = []
        self.unseen: set[tuple[Resource, str]] = set()
        self.fails: dict[str, Exception] = {}
        self.admit = lambda obj: obj
        self._version = 0

    # -- as an API server

    async def create(self, resource, obj):
        self._request("POST", resource, name_of(obj))
        if (resource, name_of(obj)) in self.objects:
            raise AlreadyExists(f"{name_of(obj)} already exists")
        return self._store(resource, {**obj, "metadata": {**obj["metadata"], "uid": f"{resource}/{name_of(obj)}"}})

    async def get(self, resource, name, namespace=""):
        self._request("GET", resource, name)
        if (resource, name) not in self.objects:
            raise NotFound(name)
        return self.objects[resource, name]

    async def update(self, resource, obj, *, dry_run=False):
        self._request("DRY-RUN" if dry_run else "PUT", resource, name_of(obj))
        live = self.objects.get((resource, name_of(obj)))
        if live is None:
            raise NotFound(name_of(obj))
        if obj["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]:
            raise Conflict("modified")
        return self.admit(deep_copy(obj)) if dry_run else self._store(resource, obj)

    async def delete(self, resource, name, namespace, *, uid, propagation):
        self._request("DELETE", resource, name)
        live = self.objects.get((resource, name))
        if live is None:
            raise NotFound(name)
        if uid_of(live) != uid:
            raise Conflict("another uid")
        return self.objects.pop((resource, name))

    def edit(self, resource, name):
        """Somebody's edit: the stored object, as a new version, to be changed in place."""
        return self._store(resource, self.objects[resource, name])

    # -- as a memory

    def note(self, resource, obj, *, owner=None):
        self.unseen.discard((resource, name_of(obj)))

    def list(self, resource, namespace=""):
        return [obj for (kind, _), obj in self.objects.items() if kind == resource]

    def serves(self, resource):
        return True

    def peek(self, resource, name):
        return None if (resource, name) in self.unseen else self.objects.get((resource, name))

    def _store(self, resource, obj):
        self._version += 1
        stored = self.admit(deep_copy(obj))
        stored["metadata"]["resourceVersion"] = str(self._version)
        self.objects[resource, name_of(obj)] = stored
        return stored

    def _request(self, verb, resource, name):
        self.requests.append(f"{verb} {resource.kind} {name}")
        if error := self.fails.pop(f"{verb} {name}", None):
            raise error

    def taken_requests(self):
        requests, self.requests = self.requests, []
        return requests


class Memory:
    """The same objects, read without waiting."""

    def __init__(self, server):
        self.server = server
        self.serves, self.note = server.serves, server.note

    def get(self, resource, name, namespace=""):
        return self.server.peek(resource, name)

    def list(self, resource, namespace=""):
        return self.server.list(resource, namespace)

    def by_index(self, resource, index_name, value):
        return [obj for obj in self.list(resource) if is_controlled_by(obj, value)]

    def keys(self, resource, index_name, value):
        return [Key.of(obj) for obj in self.by_index(resource, index_name, value)]


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def engine(server):
    return Engine(server, Memory(server))


def live_of(outcome: Outcome, name: str) -> Object:
    live = outcome.live(CONFIG_MAPS, name)
    assert live is not None
    return live


def config(name, labels=None, **data):
    metadata = {"name": name, "namespace": "ns", **({"labels": labels} if labels else {})}
    return Child(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def plan(*children, kinds=(CONFIG_MAPS,), **part):
    return Plan((Part("all", Want(children), frozenset(kinds), **part),))


def result(outcome, name, resource=CONFIG_MAPS):
    return outcome.results[ChildKey(resource, name)]


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
    assert live["spec"] == {"replicas": 5}


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


async def test_a_child_that_the_cache_has_not_seen_is_compared_not_an_error(engine, server):
    await engine.apply(OWNER, plan(config("a", x="1")))
    server.unseen.add((CONFIG_MAPS, "a"))
    server.taken_requests()
    assert isinstance(result(await engine.apply(OWNER, plan(config("a", x="1"))), "a"), Unchanged)
    assert server.taken_requests() == ["GET ConfigMap a"]


async def test_a_child_deleted_a_moment_ago_is_created(engine, server):
    await engine.apply(OWNER, plan(config("a", x="1")))
    gone = server.objects.pop((CONFIG_MAPS, "a"))
    server.peek = lambda resource, name: gone
    assert isinstance(result(await engine.apply(OWNER, plan(config("a", x="2"))), "a"), Created)


async def test_a_child_that_somebody_deleted_is_a_repair(engine, server):
    assert not (await engine.apply(OWNER, plan(config("a", x="1")))).repaired
    del server.objects[CONFIG_MAPS, "a"]
    assert (await engine.apply(OWNER, plan(config("a", x="1")))).repaired


async def test_the_child_of_a_deleted_namesake_is_adopted_and_else_written_only_if_due(engine, server):
    child = replace(config("a", {"from": "before"}, x="1"), policy=DATA)
    await engine.apply(OWNER, plan(child))
    heir = {**OWNER, "metadata": {**OWNER["metadata"], "uid": "heir"}}
    server.taken_requests()
    again = replace(config("a", {"from": "now"}, x="1"), policy=DATA)
    outcome = await Engine(server, Memory(server)).apply(heir, plan(again))
    live = live_of(outcome, "a")
    assert outcome.repaired  # worth another look: nothing was known of it when this was planned
    assert is_controlled_by(live, "heir")
    assert live["metadata"]["labels"] == {"from": "before"}
    assert server.taken_requests() == ["PUT ConfigMap a"]


async def test_a_server_in_trouble_is_for_the_next_reconcile(engine, server):
    server.fails["POST a"] = InternalError("etcd is away")
    with pytest.raises(InternalError):
        await engine.apply(OWNER, plan(config("a", x="1")))


async def test_a_newer_version_is_a_conflict_for_the_next_reconcile(engine, server):
    await engine.apply(OWNER, plan(config("a", x="1")))
    server.fails["PUT a"] = Conflict("modified")
    with pytest.raises(Conflict):
        await engine.apply(OWNER, plan(config("a", x="2")))


async def test_a_namesake_is_never_touched(engine, server):
    foreign = await server.create(CONFIG_MAPS, config("a", x="theirs").manifest)
    outcome = await engine.apply(OWNER, plan(config("a", x="1"), config("b")))
    assert isinstance(outcome.refusal.result, Taken)
    assert "ConfigMap a exists already" in outcome.refusal.result.message
    assert server.objects == {(CONFIG_MAPS, "a"): foreign}


async def test_a_refusal_is_reported_and_nothing_is_pruned(engine, server):
    await engine.apply(OWNER, plan(config("old")))
    server.fails["POST new"] = Forbidden("exceeded quota")
    outcome = await engine.apply(OWNER, plan(config("new")))
    assert isinstance(result(outcome, "new"), Rejected)
    assert outcome.refusal.part == "all"
    assert outcome.refusal.result.message == "exceeded quota"
    assert (CONFIG_MAPS, "old") in server.objects


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


async def test_an_edit_made_while_nobody_looked_is_undone(engine, server):
    """What is the default of some other field, or of another kind, is still an edit of this one."""
    container = {"name": "c", "image": "i:1"}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [container]}}}
    metadata = {"name": "a", "namespace": "ns"}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    server.admit = completed
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

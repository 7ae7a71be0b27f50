from __future__ import annotations

import asyncio

import pytest
from tests.unit.apiserver.conftest import CONFIG_MAPS, MERGE, NAMESPACES

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"


async def test_create_fills_in_what_only_the_server_knows(http):
    made = await http.create(CONFIG_MAPS, metadata={"name": "a", "uid": "mine", "generation": 7}, data={"k": "v"})
    meta = made["metadata"]
    assert made["apiVersion"] == "v1"
    assert meta["uid"] != "mine"
    assert meta["namespace"] == "default"
    assert "generation" not in meta
    assert int(meta["resourceVersion"]) == http.server.store.rv
    again = await http.ask("POST", CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert (again.code, again.body["reason"]) == (409, "AlreadyExists")
    assert again.message == 'configmaps "a" already exists'


async def test_generated_names_are_unique(http):
    made = await asyncio.gather(*(http.create(CONFIG_MAPS, metadata={"generateName": "g-"}) for _ in range(30)))
    names = {each["metadata"]["name"] for each in made}
    assert len(names) == 30
    assert all(name.startswith("g-") and len(name) == 7 for name in names)


async def test_namespaces_have_to_exist_and_not_be_going(http):
    missing = await http.ask("POST", f"{NAMESPACES}/none/configmaps", {"metadata": {"name": "a"}})
    assert (missing.code, missing.message) == (404, 'namespaces "none" not found')
    await http.create(NAMESPACES, metadata={"name": "going"})
    ending = await http.ask("DELETE", f"{NAMESPACES}/going")
    assert ending.body["status"]["phase"] == "Terminating"
    late = await http.ask("POST", f"{NAMESPACES}/going/configmaps", {"metadata": {"name": "a"}})
    assert late.code == 403
    assert late.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"


async def test_updates_need_the_version_they_are_based_on(http):
    first = await http.create(CONFIG_MAPS, metadata={"name": "a"}, data={"k": "1"})
    second = (await http.ask("PUT", f"{CONFIG_MAPS}/a", {**first, "data": {"k": "2"}})).body
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    stale = await http.ask("PUT", f"{CONFIG_MAPS}/a", {**first, "data": {"k": "3"}})
    assert (stale.code, stale.body["reason"]) == (409, "Conflict")
    assert "please apply your changes to the latest version" in stale.message
    assert (await http.ask("GET", f"{CONFIG_MAPS}/a")).body["data"] == {"k": "2"}


async def test_racing_updates_lose_nothing(http):
    await http.create(CONFIG_MAPS, metadata={"name": "a"}, data={"count": "0"})

    async def add() -> None:
        while True:
            live = (await http.ask("GET", f"{CONFIG_MAPS}/a")).body
            live["data"]["count"] = str(int(live["data"]["count"]) + 1)
            if (await http.ask("PUT", f"{CONFIG_MAPS}/a", live)).code == 200:
                return

    await asyncio.gather(*(add() for _ in range(10)))
    await asyncio.gather(*(http.patch(f"{CONFIG_MAPS}/a", {"data": {f"p{n}": "x"}}) for n in range(10)))
    data = (await http.ask("GET", f"{CONFIG_MAPS}/a")).body["data"]
    assert data["count"] == "10"
    assert len(data) == 11


async def test_a_write_that_changes_nothing_is_no_write(http):
    made = await http.create(CONFIG_MAPS, metadata={"name": "a"}, data={"k": "1"})
    for answer in (
        await http.ask("PUT", f"{CONFIG_MAPS}/a", {"metadata": {"name": "a"}, "data": {"k": "1"}}),
        await http.patch(f"{CONFIG_MAPS}/a", {"data": {"k": "1"}}),
    ):
        assert answer.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_dry_run_answers_and_keeps_nothing(http):
    made = await http.ask("POST", f"{CONFIG_MAPS}?dryRun=All", {"metadata": {"name": "a"}})
    assert made.code == 201
    assert made.body["metadata"]["uid"]
    assert (await http.ask("GET", f"{CONFIG_MAPS}/a")).code == 404
    await http.create(CONFIG_MAPS, metadata={"name": "a"}, data={"k": "1"})
    await http.ask("PATCH", f"{CONFIG_MAPS}/a?dryRun=All", {"data": {"k": "2"}}, MERGE)
    await http.ask("DELETE", f"{CONFIG_MAPS}/a?dryRun=All")
    assert (await http.ask("GET", f"{CONFIG_MAPS}/a")).body["data"] == {"k": "1"}
    refused = await http.ask("POST", f"{CONFIG_MAPS}?dryRun=Some", {"metadata": {"name": "b"}})
    assert refused.code == 422


async def test_unknown_fields_are_refused_told_or_ignored(http):
    body = {"metadata": {"name": "a"}, "junk": 1}
    strict = await http.ask("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", body)
    assert strict.code == 400
    assert 'unknown field "junk"' in strict.message
    answered = await http.ask("POST", f"{CONFIG_MAPS}?fieldValidation=Warn", body)
    assert answered.headers.getall("Warning") == ['299 - "unknown field \\"junk\\""']
    quiet = await http.ask("PUT", f"{CONFIG_MAPS}/a?fieldValidation=Ignore", body)
    assert "Warning" not in quiet.headers
    twice = b'{"metadata":{"name":"b"},"data":{"k":"1","k":"2"}}'
    repeated = await http.ask("POST", f"{CONFIG_MAPS}?fieldValidation=Strict", twice)
    assert 'duplicate field "data.k"' in repeated.message


async def test_finalizers_hold_an_object_back(http):
    await http.create(CONFIG_MAPS, metadata={"name": "a", "finalizers": ["x.io/hold"]})
    marked = await http.ask("DELETE", f"{CONFIG_MAPS}/a")
    assert marked.body["metadata"]["deletionTimestamp"]
    more = await http.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": ["x.io/hold", "x.io/more"]}})
    assert more.code == 422
    assert (await http.ask("DELETE", f"{CONFIG_MAPS}/a")).code == 200
    await http.patch(f"{CONFIG_MAPS}/a", {"metadata": {"finalizers": None}})
    assert (await http.ask("GET", f"{CONFIG_MAPS}/a")).code == 404


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
async def test_propagation_policies_leave_their_mark(http, policy, finalizer):
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    marked = await http.ask("DELETE", f"{CONFIG_MAPS}/a?propagationPolicy={policy}")
    assert marked.body["metadata"]["finalizers"] == [finalizer]


async def test_deletion_checks_its_preconditions(http):
    made = await http.create(CONFIG_MAPS, metadata={"name": "a"})
    for wanted in ({"uid": "other"}, {"resourceVersion": "1"}):
        refused = await http.ask("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": wanted})
        assert (refused.code, refused.body["reason"]) == (409, "Conflict")
    right = {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}
    gone = await http.ask("DELETE", f"{CONFIG_MAPS}/a", {"preconditions": right})
    assert gone.body["status"] == "Success"
    assert gone.body["details"]["uid"] == made["metadata"]["uid"]


@pytest.mark.parametrize("grace", ["%C2%B2", "9" * 5000, "soon", "-"])
async def test_a_grace_period_that_is_no_number_is_refused(http, grace):
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    refused = await http.ask("DELETE", f"{CONFIG_MAPS}/a?gracePeriodSeconds={grace}")
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")


async def test_evictions_at_once_take_no_more_than_a_budget_allows(http):
    pods, budgets = f"{NAMESPACES}/default/pods", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    names = [f"p{index}" for index in range(6)]
    for name in names:
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}
        await http.create(pods, metadata={"name": name, "labels": {"app": "a"}}, spec=spec)
        status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        await http.ask("PATCH", f"{pods}/{name}/status", {"status": status}, MERGE)
    await http.create(budgets, metadata={"name": "b"}, spec={"selector": {"matchLabels": {"app": "a"}}})
    allowed = {"observedGeneration": 1, "disruptionsAllowed": 4, "currentHealthy": 6, "desiredHealthy": 2}
    await http.ask("PATCH", f"{budgets}/b/status", {"status": {**allowed, "expectedPods": 6}}, MERGE)
    answers = await asyncio.gather(
        *(http.ask("POST", f"{pods}/{name}/eviction", {"metadata": {"name": name}}) for name in names)
    )
    assert sorted(answer.code for answer in answers) == [201, 201, 201, 201, 429, 429]
    status = (await http.ask("GET", f"{budgets}/b")).body["status"]
    assert (status["disruptionsAllowed"], len(status["disruptedPods"])) == (0, 4)


@pytest.mark.parametrize("options", ["x", ["x"], {"gracePeriodSeconds": "x"}, {"preconditions": {"uid": 1}}])
async def test_an_eviction_with_malformed_options_is_refused(http, options):
    pods = f"{NAMESPACES}/default/pods"
    await http.create(pods, metadata={"name": "a"}, spec={"containers": [{"name": "c", "image": "i"}]})
    refused = await http.ask("POST", f"{pods}/a/eviction", {"metadata": {"name": "a"}, "deleteOptions": options})
    assert (refused.code, refused.body["reason"]) == (400, "BadRequest")


async def test_a_selection_is_deleted_at_once(http):
    for n in range(4):
        await http.create(CONFIG_MAPS, metadata={"name": f"a{n}", "labels": {"even": str(n % 2 == 0)}})
    gone = await http.ask("DELETE", f"{CONFIG_MAPS}?labelSelector=even%3DTrue")
    assert [item["metadata"]["name"] for item in gone.body["items"]] == ["a0", "a2"]
    left = (await http.ask("GET", CONFIG_MAPS)).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["a1", "a3"]


async def test_apply_by_two_managers(http):
    def intent(**data: str) -> dict:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}

    path = f"{CONFIG_MAPS}/a"
    assert (await http.ask("PATCH", f"{path}?fieldManager=one", intent(a="1", b="1"), APPLY)).code == 201
    clash = await http.ask("PATCH", f"{path}?fieldManager=two", intent(a="2"), APPLY)
    assert (clash.code, clash.body["details"]["causes"][0]["field"]) == (409, ".data.a")
    forced = await http.ask("PATCH", f"{path}?fieldManager=two&force=true", intent(a="2"), APPLY)
    assert forced.body["data"] == {"a": "2", "b": "1"}
    nothing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    dropped = await http.ask("PATCH", f"{path}?fieldManager=one", nothing, APPLY)
    assert dropped.body["data"] == {"a": "2"}
    assert [each["manager"] for each in dropped.body["metadata"]["managedFields"]] == ["two"]
    nobody = await http.ask("PATCH", path, intent(), APPLY)
    assert nobody.code == 422


async def test_json_patches(http):
    await http.create(CONFIG_MAPS, metadata={"name": "a"}, data={"k": "1"})
    done = await http.patch(f"{CONFIG_MAPS}/a", [{"op": "replace", "path": "/data/k", "value": "2"}], JSON_PATCH)
    assert done.body["data"] == {"k": "2"}
    failed = await http.patch(f"{CONFIG_MAPS}/a", [{"op": "test", "path": "/data/k", "value": "1"}], JSON_PATCH)
    assert failed.code == 422
    assert (await http.patch(f"{CONFIG_MAPS}/a", {}, "application/json")).code == 415


async def test_services_keep_their_addresses(http):
    path = f"{NAMESPACES}/default/services"
    ports = [{"port": 80}]
    made = [await http.create(path, metadata={"name": f"s{n}"}, spec={"ports": ports}) for n in range(5)]
    addresses = [each["spec"]["clusterIP"] for each in made]
    assert len(set(addresses)) == 5
    put = await http.ask("PUT", f"{path}/s0", {"metadata": {"name": "s0"}, "spec": {"ports": ports}})
    assert put.body["spec"]["clusterIP"] == addresses[0]
    moved = await http.patch(f"{path}/s0", {"spec": {"clusterIP": "10.96.7.7"}})
    assert moved.code == 422
    node = await http.patch(f"{path}/s1", {"spec": {"type": "NodePort"}})
    assert 30000 <= node.body["spec"]["ports"][0]["nodePort"] < 32768
    headless = await http.create(path, metadata={"name": "h"}, spec={"clusterIP": "None", "ports": ports})
    assert headless["spec"]["clusterIP"] == "None"


async def test_scale_is_one_number_of_the_workload(http):
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    await http.create(path, metadata={"name": "d"}, spec=spec)
    scale = (await http.ask("GET", f"{path}/d/scale")).body
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 0, "selector": "a=b"})
    assert (await http.patch(f"{path}/d/scale", {"spec": {"replicas": 5}})).body["spec"] == {"replicas": 5}
    live = (await http.ask("GET", f"{path}/d")).body
    assert (live["spec"]["replicas"], live["metadata"]["generation"]) == (5, 2)
    assert (await http.patch(f"{path}/d/scale", {"spec": {"replicas": -1}})).code == 422


async def test_status_and_the_rest_are_written_apart(http):
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    made = await http.create(path, metadata={"name": "d"}, spec=spec, status={"replicas": 9})
    assert made["status"] == {}
    both = {"spec": {"replicas": 7}, "status": {"replicas": 3}}
    answered = (await http.patch(f"{path}/d/status", both)).body
    assert (answered["spec"]["replicas"], answered["status"]["replicas"], answered["metadata"]["generation"]) == (
        1,
        3,
        1,
    )
    wanted = (await http.patch(f"{path}/d", {"spec": {"replicas": 7}, "status": {"replicas": 4}})).body
    assert (wanted["spec"]["replicas"], wanted["status"]["replicas"], wanted["metadata"]["generation"]) == (7, 3, 2)


async def test_a_new_object_has_no_version_yet(http):
    versioned = {"metadata": {"name": "a", "resourceVersion": "5"}}
    refused = await http.ask("POST", CONFIG_MAPS, versioned)
    assert (refused.code, refused.message) == (500, "resourceVersion should not be set on objects to be created")
    assert (await http.ask("POST", f"{CONFIG_MAPS}?dryRun=All", versioned)).code == 201  # as kube-apiserver has it

from __future__ import annotations

import pytest
from tests.unit.apiserver.conftest import CONFIG_MAPS, NAMESPACES

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"


def names(answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


@pytest.fixture
async def ten(http):
    for n in range(10):
        await http.create(CONFIG_MAPS, metadata={"name": f"a{n}", "labels": {"n": str(n), "odd": str(n % 2)}})
    return http


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("labelSelector=n%3D3", ["a3"]),
        ("labelSelector=n in (1,2),odd!%3D0", ["a1"]),
        ("labelSelector=!n", []),
        ("fieldSelector=metadata.name%3Da4", ["a4"]),
        ("fieldSelector=metadata.name!%3Da4&labelSelector=odd%3D0", ["a0", "a2", "a6", "a8"]),
    ],
)
async def test_selectors(ten, query, found):
    assert names(await ten.ask("GET", f"{CONFIG_MAPS}?{query}")) == found


@pytest.mark.parametrize(
    "query", ["labelSelector=a%3D%3D%3Db", "fieldSelector=x", "fieldSelector=spec.x%3D1", "limit=x"]
)
async def test_selectors_that_make_no_sense(ten, query):
    assert (await ten.ask("GET", f"{CONFIG_MAPS}?{query}")).code == 400


@pytest.mark.parametrize(
    ("api", "selector"),
    [
        ("/apis/events.k8s.io/v1", "regarding.kind%3DJob,regarding.name%3Dj,reportingController%3Dours"),
        ("/api/v1", "involvedObject.kind%3DJob,involvedObject.name%3Dj,reportingComponent%3Dours"),
    ],
)
async def test_events_are_selected_by_the_names_of_either_version(http, api, selector):
    reported = {"eventTime": "2026-11-16T09:00:00.000000Z", "action": "Run", "reason": "R", "type": "Normal"}
    for number, name in enumerate(("j", "other")):
        regarding = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "default", "name": name}
        event = {"regarding": regarding, "reportingController": "ours", "reportingInstance": "1", **reported}
        path = "/apis/events.k8s.io/v1/namespaces/default/events"
        await http.create(path, metadata={"name": f"e{number}"}, **event)
    assert names(await http.ask("GET", f"{api}/namespaces/default/events?fieldSelector={selector}")) == ["e0"]


async def test_pages_show_one_moment(ten):
    first = await ten.ask("GET", f"{CONFIG_MAPS}?limit=4")
    meta = first.body["metadata"]
    assert meta["remainingItemCount"] == 6
    await ten.ask("DELETE", f"{CONFIG_MAPS}/a5")
    await ten.create(CONFIG_MAPS, metadata={"name": "a55"})
    second = await ten.ask("GET", f"{CONFIG_MAPS}?limit=4&continue={meta['continue']}")
    third = await ten.ask("GET", f"{CONFIG_MAPS}?limit=4&continue={second.body['metadata']['continue']}")
    assert names(first) + names(second) + names(third) == [f"a{n}" for n in range(10)]
    assert third.body["metadata"]["resourceVersion"] == meta["resourceVersion"]
    ten.server.store.compact(ten.server.store.rv)
    late = await ten.ask("GET", f"{CONFIG_MAPS}?limit=4&continue={meta['continue']}")
    assert (late.code, late.body["reason"]) == (410, "Expired")
    rest = await ten.ask("GET", f"{CONFIG_MAPS}?limit=4&continue={late.body['metadata']['continue']}")
    assert names(rest) == ["a4", "a55", "a6", "a7"]  # as it is now
    assert rest.body["metadata"]["resourceVersion"] == str(ten.server.store.rv)


async def test_lists_as_of_a_revision(ten):
    then = (await ten.ask("GET", CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    await ten.ask("DELETE", f"{CONFIG_MAPS}/a0")
    exact = await ten.ask("GET", f"{CONFIG_MAPS}?resourceVersion={then}&resourceVersionMatch=Exact")
    assert len(names(exact)) == 10
    assert len(names(await ten.ask("GET", f"{CONFIG_MAPS}?resourceVersion={then}"))) == 9
    future = await ten.ask("GET", f"{CONFIG_MAPS}?resourceVersion=999999")
    assert (future.code, future.body["reason"]) == (504, "Timeout")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("resourceVersionMatch=Exact", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        (
            "resourceVersion=0&resourceVersionMatch=Exact",
            'resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        ("sendInitialEvents=true", "sendInitialEvents is forbidden for list"),
        (
            "watch=true&sendInitialEvents=true",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ),
        (
            "watch=true&resourceVersionMatch=NotOlderThan",
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        ),
    ],
)
async def test_options_that_contradict_each_other_are_refused(ten, query, message):
    refused = await ten.ask("GET", f"{CONFIG_MAPS}?{query}")
    assert refused.code == 422
    assert [cause["message"] for cause in refused.body["details"]["causes"]] == [f"Forbidden: {message}"]


async def test_other_namespaces_are_seen_only_from_above(ten):
    await ten.create(NAMESPACES, metadata={"name": "other"})
    await ten.create(f"{NAMESPACES}/other/configmaps", metadata={"name": "b"})
    assert "b" not in names(await ten.ask("GET", CONFIG_MAPS))
    assert "b" in names(await ten.ask("GET", "/api/v1/configmaps"))


async def test_tables_for_people(ten):
    table = (await ten.ask("GET", f"{CONFIG_MAPS}?limit=2", Accept=TABLE)).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert [row["cells"][:2] for row in table["rows"]] == [["a0", 0], ["a1", 0]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert table["metadata"]["continue"]


async def test_metadata_alone(ten):
    partial = (await ten.ask("GET", CONFIG_MAPS, Accept=METADATA)).body
    assert partial["kind"] == "PartialObjectMetadataList"
    assert {frozenset(item) for item in partial["items"]} == {frozenset({"kind", "apiVersion", "metadata"})}


async def test_what_cannot_be_said_is_not_acceptable(ten):
    assert (await ten.ask("GET", CONFIG_MAPS, Accept="image/png")).code == 406


async def test_what_a_row_includes(http):
    await http.create(CONFIG_MAPS, metadata={"name": "a"})
    kinds: dict[str, str | None] = {}
    for included in ("", "None", "Metadata", "Object"):
        answer = await http.ask("GET", f"{CONFIG_MAPS}?includeObject={included}", Accept=TABLE)
        shown = answer.body["rows"][0]["object"]
        kinds[included] = shown and shown["kind"]
    assert kinds == {
        "": "PartialObjectMetadata",
        "None": None,
        "Metadata": "PartialObjectMetadata",
        "Object": "ConfigMap",
    }
    refused = await http.ask("GET", f"{CONFIG_MAPS}?includeObject=All", Accept=TABLE)
    assert refused.code == 400
    assert refused.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "All": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )

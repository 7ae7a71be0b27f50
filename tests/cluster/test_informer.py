"""The cache against a server that misbehaves: nothing may be lost, and nothing reported twice."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest
from tests.cluster.faulty_proxy import FaultyProxy
from tests.waiting import until

from isvc.kube.objects import Key, Object
from isvc.kube.resource import CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, SECRETS, Resource
from isvc.toolkit.cache import OWNER, Cache
from isvc.toolkit.cache.informer import FIRST_BACKOFF
from isvc.toolkit.client import Client
from isvc.toolkit.reads import Read


@pytest.fixture
async def proxy(cluster) -> AsyncIterator[FaultyProxy]:
    async with FaultyProxy(cluster) as running:
        yield running


@pytest.fixture
async def cache(proxy) -> AsyncIterator[Cache]:
    async with Client.connect(proxy.config) as client:
        cache = Cache(client)
        yield cache
        await cache.stop()


def version(obj: dict) -> int:
    return int(obj["metadata"]["resourceVersion"])


class History:
    """What an informer reported, checked for sense as it comes."""

    def __init__(self) -> None:
        self.objects: dict[str, dict] = {}
        self.deleted: list[str] = []
        self.reported = 0

    def __call__(self, before: dict | None, after: dict | None) -> None:
        self.reported += 1
        name = (after or before or {})["metadata"]["name"]
        known = self.objects.get(name)
        assert (before or {}).get("metadata", {}).get("resourceVersion") == (
            known["metadata"]["resourceVersion"] if known else None
        )
        if after is None:
            del self.objects[name]
            self.deleted.append(name)
        else:
            assert known is None or int(after["metadata"]["resourceVersion"]) > int(
                known["metadata"]["resourceVersion"]
            )
            self.objects[name] = after


def config_map(name: str, namespace: str, value: str = "") -> dict:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}}


async def fill(cache: Cache) -> None:
    cache.start()
    async with asyncio.timeout(60):
        await cache.wait_for_sync()


async def follow(cache: Cache, namespace: str) -> History:
    history = History()
    cache.declare("test", Read(CONFIG_MAPS, namespace=namespace))
    cache.subscribe(CONFIG_MAPS, history)
    await fill(cache)
    return history


async def test_mirrors_what_is_and_what_comes(cache, client, namespace):
    await client.create(CONFIG_MAPS, config_map("early", namespace, "1"))
    history = await follow(cache, namespace)
    early = cache.get(CONFIG_MAPS, "early", namespace)
    assert early["data"] == {"value": "1"}
    assert (early["apiVersion"], early["kind"]) == ("v1", "ConfigMap")
    await client.create(CONFIG_MAPS, config_map("late", namespace))
    await until(lambda: cache.get(CONFIG_MAPS, "late", namespace))
    await client.delete(CONFIG_MAPS, "early", namespace)
    await until(lambda: history.deleted == ["early"])
    assert [each["metadata"]["name"] for each in cache.list(CONFIG_MAPS)] == ["late"]
    assert cache.serves(CONFIG_MAPS)
    assert not cache.serves(SECRETS)


async def test_keeps_of_managed_fields_the_labels_that_we_set(cache, client, namespace):
    ours, theirs = config_map("ours", namespace), config_map("theirs", namespace)
    for each in (ours, theirs):
        each["metadata"]["labels"] = {"team": "ml"}
    await client.create(CONFIG_MAPS, ours)
    await client.create(CONFIG_MAPS, config_map("plain", namespace))
    await client.create(CONFIG_MAPS, theirs, field_manager="somebody")
    await client.patch(CONFIG_MAPS, "ours", {"metadata": {"labels": {"x": "1"}}}, namespace, field_manager="somebody")
    await follow(cache, namespace)
    fields = {
        name: cache.get(CONFIG_MAPS, name, namespace)["metadata"].get("managedFields")
        for name in ("ours", "plain", "theirs")
    }
    labels: Object = {"f:labels": {".": {}, "f:team": {}}}
    assert fields == {"ours": [{"manager": "isvc", "fieldsV1": {"f:metadata": labels}}], "plain": None, "theirs": None}


async def test_selectors_are_the_servers_work(cache, client, namespace, proxy):
    labelled = config_map("yes", namespace)
    labelled["metadata"]["labels"] = {"part-of": "us"}
    cache.declare("test", Read(CONFIG_MAPS, namespace=namespace, labels="part-of=us"))
    history = History()
    cache.subscribe(CONFIG_MAPS, history)
    await fill(cache)
    await client.create(CONFIG_MAPS, config_map("no", namespace))
    await client.create(CONFIG_MAPS, labelled)
    await until(lambda: "yes" in history.objects)
    assert list(history.objects) == ["yes"]
    await client.patch(CONFIG_MAPS, "yes", {"metadata": {"labels": {"part-of": None}}}, namespace)
    await until(lambda: history.deleted == ["yes"])


async def test_a_watch_cut_every_second_loses_no_event(cache, client, namespace, proxy):
    history = await follow(cache, namespace)
    proxy.cut_every = 1.0
    expected: dict[str, str] = {}
    rounds = 0
    while proxy.cuts < 4:
        rounds += 1
        name = f"c{rounds % 7}"
        if name in expected and rounds % 3 == 0:
            await client.delete(CONFIG_MAPS, name, namespace)
            del expected[name]
        elif name in expected:
            await client.patch(CONFIG_MAPS, name, {"data": {"value": str(rounds)}}, namespace)
            expected[name] = str(rounds)
        else:
            await client.create(CONFIG_MAPS, config_map(name, namespace, str(rounds)))
            expected[name] = str(rounds)
        await asyncio.sleep(0.01)
    proxy.cut_every = None
    await until(lambda: {name: obj["data"]["value"] for name, obj in history.objects.items()} == expected)
    assert history.reported == rounds, "each change is reported once"
    assert {each["metadata"]["name"] for each in cache.list(CONFIG_MAPS)} == set(expected)
    assert proxy.lists == 1, "a broken watch resumes without listing again"


async def test_what_was_deleted_while_away_is_told_when_the_watch_expired(cache, client, namespace, proxy):
    for name in ("stays", "goes", "changes"):
        await client.create(CONFIG_MAPS, config_map(name, namespace, "before"))
    history = await follow(cache, namespace)
    proxy.go_away()
    await client.delete(CONFIG_MAPS, "goes", namespace)
    await client.patch(CONFIG_MAPS, "changes", {"data": {"value": "after"}}, namespace)
    await client.create(CONFIG_MAPS, config_map("comes", namespace))
    proxy.expire_watches = True
    proxy.come_back()
    await until(lambda: proxy.lists >= 2)
    proxy.expire_watches = False
    await until(lambda: set(history.objects) == {"stays", "changes", "comes"})
    assert history.deleted == ["goes"]
    assert history.objects["changes"]["data"]["value"] == "after"
    assert history.reported == 3 + 3


async def test_no_busy_loop_while_the_server_is_away(cache, client, namespace, proxy):
    await follow(cache, namespace)
    await until(lambda: proxy.streaming)
    proxy.expire_watches = True  # an answer at once, again and again: the worst that a server can do
    proxy.cut()
    before, began = proxy.requests, time.monotonic()
    await until(lambda: proxy.requests - before >= 6)
    # Each of three failures waits at least half of its backoff; without them six requests take milliseconds.
    assert time.monotonic() - began > FIRST_BACKOFF
    proxy.expire_watches = False
    await client.create(CONFIG_MAPS, config_map("after", namespace))
    await until(lambda: cache.get(CONFIG_MAPS, "after", namespace))


@pytest.mark.parametrize("refusal", ["Forbidden", "NotFound"])
async def test_a_server_that_refuses_for_a_while_empties_nothing(cache, client, namespace, proxy, refusal):
    await client.create(CONFIG_MAPS, config_map("stays", namespace))
    history = await follow(cache, namespace)
    await until(lambda: proxy.streaming)
    proxy.refusal = refusal
    proxy.cut()
    asked = proxy.requests
    await until(lambda: proxy.requests > asked + 2)
    assert cache.get(CONFIG_MAPS, "stays", namespace)
    proxy.refusal = ""
    await client.create(CONFIG_MAPS, config_map("comes", namespace))
    await until(lambda: "comes" in history.objects)
    assert history.reported == 2


async def test_an_optional_kind_that_is_not_for_us_does_not_hold_up_the_others(cache, namespace, proxy):
    proxy.refusal = "Forbidden"
    cache.declare("test", Read(SECRETS, namespace=namespace, optional=True))
    await fill(cache)
    assert not cache.serves(SECRETS)
    proxy.refusal = ""
    await until(lambda: cache.serves(SECRETS))


async def test_an_optional_kind_is_not_missing_because_that_was_said_once(cache, client, namespace, proxy):
    await client.create(CONFIG_MAPS, config_map("stays", namespace))
    history = History()
    cache.declare("test", Read(CONFIG_MAPS, namespace=namespace, optional=True))
    cache.subscribe(CONFIG_MAPS, history)
    await fill(cache)
    await until(lambda: proxy.streaming)
    proxy.refusal, proxy.refusals = "NotFound", 2  # of whichever watches: there is one of CRDs, too
    proxy.cut()
    await until(lambda: not proxy.refusals and proxy.streaming)
    await client.create(CONFIG_MAPS, config_map("comes", namespace))
    await until(lambda: "comes" in history.objects)
    assert not history.deleted


async def test_our_own_writes_are_seen_at_once_and_told_once(cache, client, namespace):
    history = await follow(cache, namespace)
    created = await client.create(CONFIG_MAPS, config_map("mine", namespace, "1"))
    cache.note(CONFIG_MAPS, created)
    assert cache.get(CONFIG_MAPS, "mine", namespace)["data"] == {"value": "1"}
    updated = await client.patch(CONFIG_MAPS, "mine", {"data": {"value": "2"}}, namespace)
    cache.note(CONFIG_MAPS, updated)
    cache.note(CONFIG_MAPS, created)  # an answer that comes late does not take back what is newer
    assert cache.get(CONFIG_MAPS, "mine", namespace)["data"] == {"value": "2"}
    await client.create(CONFIG_MAPS, config_map("last", namespace))
    await until(lambda: "last" in history.objects)
    assert history.reported == 3
    await client.delete(CONFIG_MAPS, "mine", namespace)
    await until(lambda: history.deleted == ["mine"])
    cache.note(CONFIG_MAPS, updated)  # nor does it bring back the dead
    assert cache.get(CONFIG_MAPS, "mine", namespace) is None


@pytest.mark.parametrize("by", ["our own write", "a list"])
async def test_an_object_that_takes_the_place_of_another_is_told_as_one_that_went_and_one_that_came(
    cache, client, namespace, proxy, by
):
    """Who compares the two would take the second for the first, and do nothing for it."""
    history = await follow(cache, namespace)
    await client.create(CONFIG_MAPS, config_map("twice", namespace))
    await until(lambda: "twice" in history.objects)
    proxy.expire_watches = by == "a list"
    proxy.go_away()
    await client.delete(CONFIG_MAPS, "twice", namespace)
    second = await client.create(CONFIG_MAPS, config_map("twice", namespace))
    if by == "our own write":
        cache.note(CONFIG_MAPS, second)
    else:
        proxy.come_back()
        await until(lambda: version(history.objects["twice"]) == version(second))
    assert history.deleted == ["twice"]
    assert cache.get(CONFIG_MAPS, "twice", namespace)["metadata"]["uid"] == second["metadata"]["uid"]


async def test_a_write_outside_of_the_selection_is_not_taken_in(cache, client, namespace):
    """Its watch would never tell that it has gone."""
    cache.declare("test", Read(CONFIG_MAPS, namespace=namespace, labels="ours", fields="metadata.name!=secret-one"))
    await fill(cache)

    async def write(name: str, **labels: str) -> None:
        manifest = config_map(name, namespace)
        manifest["metadata"]["labels"] = labels
        cache.note(CONFIG_MAPS, await client.create(CONFIG_MAPS, manifest))

    elsewhere = config_map("elsewhere", "default")
    cache.note(CONFIG_MAPS, elsewhere | {"metadata": elsewhere["metadata"] | {"resourceVersion": "999999999"}})
    await write("theirs")
    await write("secret-one", ours="")
    await write("ours", ours="")
    assert [Key.of(each).name for each in cache.list(CONFIG_MAPS)] == ["ours"]


async def test_children_are_found_by_owner_and_by_own_indexes(cache, client, namespace):
    owner = await client.create(CONFIG_MAPS, config_map("owner", namespace))
    child = config_map("child", namespace, "blue")
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    child["metadata"]["ownerReferences"] = [reference | {"controller": True}]
    await client.create(CONFIG_MAPS, child)
    cache.declare(
        "test", Read(CONFIG_MAPS, namespace=namespace, indexers={"value": lambda obj: [obj["data"]["value"]]})
    )
    await fill(cache)
    assert [Key.of(each).name for each in cache.by_index(CONFIG_MAPS, OWNER, owner["metadata"]["uid"])] == ["child"]
    assert [Key.of(each).name for each in cache.by_index(CONFIG_MAPS, "value", "blue")] == ["child"]


def crd(plural: str, group: str) -> dict:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": "wisp", "kind": "Wisp"},
            "versions": [version],
        },
    }


async def test_an_optional_kind_is_picked_up_when_its_crd_comes_and_dropped_when_it_goes(cache, client, namespace):
    wisps = Resource(f"{namespace}.example", "v1", "wisps", "Wisp")
    cache.declare("test", Read(wisps, optional=True))
    history = History()
    cache.subscribe(wisps, history)
    await fill(cache)
    assert not cache.serves(wisps)
    assert cache.list(wisps) == []
    await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd(wisps.plural, wisps.group))
    await until(lambda: cache.serves(wisps))
    wisp = {"apiVersion": wisps.api_version, "kind": "Wisp", "metadata": {"name": "w", "namespace": namespace}}
    await client.create(wisps, wisp)
    await until(lambda: "w" in history.objects)
    await client.delete(CUSTOM_RESOURCE_DEFINITIONS, str(wisps))
    await until(lambda: history.deleted == ["w"])
    await until(lambda: not cache.serves(wisps))


async def test_selections_of_one_kind_are_read_as_one(cache, client, namespace):
    """Labelled objects anywhere, and one more by its name: each is found, and an object in both is found once."""
    cache.declare("children", Read(CONFIG_MAPS, labels=f"part-of={namespace}", indexers={"value": value_of}))
    cache.declare("settings", Read(CONFIG_MAPS, namespace=namespace, fields="metadata.name=settings"))
    labelled = {"labels": {"part-of": namespace}}
    for name, metadata in (("settings", labelled), ("child", labelled), ("other", {})):
        manifest = config_map(name, namespace, "a")
        await client.create(CONFIG_MAPS, manifest | {"metadata": manifest["metadata"] | metadata})
    await fill(cache)
    assert {obj["metadata"]["name"] for obj in cache.list(CONFIG_MAPS, namespace)} == {"settings", "child"}
    assert len(cache.list(CONFIG_MAPS, namespace)) == 2
    assert [key.name for key in cache.keys(CONFIG_MAPS, "value", "a")] == ["child", "settings"]
    await client.patch(CONFIG_MAPS, "settings", {"metadata": {"labels": None}, "data": {"value": "b"}}, namespace)
    await until(lambda: cache.get(CONFIG_MAPS, "settings", namespace)["data"]["value"] == "b")
    await until(lambda: [key.name for key in cache.keys(CONFIG_MAPS, "value", "a")] == ["child"])
    assert [obj["data"] for obj in cache.by_index(CONFIG_MAPS, "value", "b")] == [{"value": "b"}]
    assert cache.get(CONFIG_MAPS, "other", namespace) is None


def value_of(obj: dict) -> list[str]:
    return [obj["data"]["value"]]

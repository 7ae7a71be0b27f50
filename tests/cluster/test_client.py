from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace
from datetime import timedelta

import pytest

from isvc.kube.errors import AlreadyExists, Conflict, Invalid, NotFound, Unauthorized
from isvc.kube.objects import GVK
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES, PODS
from isvc.toolkit.client import Client, PatchKind, kubeconfig
from isvc.toolkit.client import client as client_module
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.failure import NotLeader, Unreachable
from isvc.wire.x509.issue import issue_authority, issue_serving


def config_map(name: str, namespace: str, **data: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


async def test_an_object_through_its_whole_life(client, namespace):
    created = await client.create(CONFIG_MAPS, config_map("a", namespace, x="1"))
    assert created["metadata"]["managedFields"][0]["manager"] == "isvc"
    assert await client.get(CONFIG_MAPS, "a", namespace) == created
    updated = await client.update(CONFIG_MAPS, created | {"data": {"x": "2"}})
    assert updated["data"] == {"x": "2"}
    patched = await client.patch(CONFIG_MAPS, "a", {"data": {"y": "3"}}, namespace)
    assert patched["data"] == {"x": "2", "y": "3"}
    await client.delete(CONFIG_MAPS, "a", namespace)
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await client.get(CONFIG_MAPS, "a", namespace)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/", "a/status", "../configmaps/a", "a%2Fstatus", "..%2fconfigmaps%2fa"]
)
async def test_what_no_object_can_be_called_does_not_exist(client, namespace, name: str):
    await client.create(CONFIG_MAPS, config_map("a", namespace))
    assert await client.find(CONFIG_MAPS, name, namespace) is None


async def test_refusals_are_typed(client, namespace):
    created = await client.create(CONFIG_MAPS, config_map("a", namespace))
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAPS, config_map("a", namespace))
    await client.patch(CONFIG_MAPS, "a", {"data": {"x": "1"}}, namespace)
    with pytest.raises(Conflict):
        await client.update(CONFIG_MAPS, created | {"data": {"x": "2"}})
    with pytest.raises(Invalid):
        await client.create(CONFIG_MAPS, config_map("Not A Name", namespace))
    with pytest.raises(Conflict):
        await client.delete(CONFIG_MAPS, "a", namespace, uid="00000000-0000-0000-0000-000000000000")


async def test_all_kinds_of_patch(client, namespace):
    await client.create(CONFIG_MAPS, config_map("a", namespace, x="1"))

    async def patch(body: object, kind: PatchKind, **options: object) -> dict:
        return await client.patch(CONFIG_MAPS, "a", body, namespace, kind=kind, **options)

    assert (await patch([{"op": "add", "path": "/data/y", "value": "2"}], PatchKind.JSON))["data"]["y"] == "2"
    assert (await patch({"data": {"z": "3"}}, PatchKind.STRATEGIC))["data"] == {"x": "1", "y": "2", "z": "3"}
    manifest = config_map("a", namespace, x="applied")
    with pytest.raises(Conflict):
        await patch(manifest, PatchKind.APPLY, field_manager="somebody")
    assert (await patch(manifest, PatchKind.APPLY, field_manager="somebody", force=True))["data"]["x"] == "applied"


async def test_a_dry_run_changes_nothing(client, namespace):
    await client.create(CONFIG_MAPS, config_map("a", namespace), dry_run=True)
    assert (await client.list(CONFIG_MAPS, namespace)).items == []


async def test_lists_are_paged_selected_and_carry_their_kind(client, namespace, monkeypatch):
    monkeypatch.setattr(client_module, "PAGE", 3)
    for number in range(8):
        manifest = config_map(f"c{number}", namespace)
        manifest["metadata"]["labels"] = {"odd": str(number % 2)}
        await client.create(CONFIG_MAPS, manifest)
    everything = await client.list(CONFIG_MAPS, namespace)
    assert [item["metadata"]["name"] for item in everything.items] == [f"c{number}" for number in range(8)]
    assert all(GVK.of(item) == CONFIG_MAPS.gvk for item in everything.items)
    assert int(everything.resource_version) >= int(everything.items[-1]["metadata"]["resourceVersion"])
    odd = await client.list(CONFIG_MAPS, namespace, labels="odd=1")
    assert [item["metadata"]["name"] for item in odd.items] == ["c1", "c3", "c5", "c7"]
    named = await client.list(CONFIG_MAPS, namespace, fields="metadata.name=c5")
    assert [item["metadata"]["name"] for item in named.items] == ["c5"]


async def test_a_watch_brings_changes_of_any_size_in_order(client, namespace):
    start = (await client.list(CONFIG_MAPS, namespace)).resource_version
    large = "x" * 900_000  # a line longer than any reader's buffer
    seen = []

    async def watch() -> None:
        async with aclosing(client.watch(CONFIG_MAPS, namespace, resource_version=start)) as events:
            async for event in events:
                if event.type != "BOOKMARK":
                    seen.append((event.type, len(event.object.get("data", {}).get("x", ""))))
                if event.type == "DELETED":
                    return

    watching = asyncio.create_task(watch())
    await client.create(CONFIG_MAPS, config_map("a", namespace, x=large))
    await client.patch(CONFIG_MAPS, "a", {"data": {"x": "small"}}, namespace)
    await client.delete(CONFIG_MAPS, "a", namespace)
    async with asyncio.timeout(60):
        await watching
    assert seen == [("ADDED", 900_000), ("MODIFIED", 5), ("DELETED", 5)]


async def test_the_status_is_a_subresource(client, namespace):
    container = {"name": "c", "image": "i"}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container]}}
    pod = await client.create(PODS, manifest, namespace)
    updated = await client.update(PODS, pod | {"status": {"phase": "Running"}}, subresource="status")
    assert updated["status"]["phase"] == "Running"
    patched = await client.patch(PODS, "p", {"status": {"message": "hi"}}, namespace, subresource="status")
    assert (patched["status"]["phase"], patched["status"]["message"]) == ("Running", "hi")


async def test_a_fence_holds_back_writes_but_not_reads(client, namespace):
    def fence() -> None:
        raise NotLeader("the lease has passed")

    client.guard(fence)
    with pytest.raises(NotLeader):
        await client.create(CONFIG_MAPS, config_map("a", namespace))
    assert (await client.list(CONFIG_MAPS, namespace)).items == []
    await client.without_fence().create(CONFIG_MAPS, config_map("a", namespace))


async def test_a_wrong_token_is_unauthorized(cluster):
    config = replace(kubeconfig.load(cluster.kubeconfig), token="wrong")
    async with Client.connect(config) as stranger:
        with pytest.raises(Unauthorized):
            await stranger.list(NAMESPACES)


async def test_an_expired_client_certificate_is_named(cluster):
    clock = SystemClock()
    long_ago = clock.now() - timedelta(days=30)
    authority = issue_authority("somebody", long_ago)
    pair = issue_serving(authority, ["admin"], long_ago, timedelta(days=1))
    config = replace(
        kubeconfig.load(cluster.kubeconfig), token="", client_certificate=pair.certificate, client_key=pair.key
    )
    async with Client.connect(config) as stranger:
        with pytest.raises((Unauthorized, Unreachable), match="the client certificate expired on "):
            await stranger.list(NAMESPACES)


async def test_a_server_that_is_not_trusted_is_one_clear_line(cluster):
    if not cluster.url.startswith("https"):
        pytest.fail("the cluster is expected to serve TLS")
    authority = issue_authority("somebody else", SystemClock().now())
    config = replace(kubeconfig.load(cluster.kubeconfig), insecure=False, ca=authority.certificate)
    async with Client.connect(config) as careful:
        with pytest.raises(Unreachable, match="the server's certificate is not valid") as caught:
            await careful.list(NAMESPACES)
    assert "\n" not in str(caught.value)


async def test_tokens_are_read_again_when_the_server_rejects_them(cluster, tmp_path):
    good = kubeconfig.load(cluster.kubeconfig)
    token = tmp_path / "token"
    token.write_text("stale")
    async with Client.connect(replace(good, token="", token_file=token)) as client:
        with pytest.raises(Unauthorized):
            await client.list(NAMESPACES)
        token.write_text(good.token)
        assert (await client.list(NAMESPACES)).items


async def test_many_calls_at_once_share_few_connections(client, namespace):
    created = await asyncio.gather(
        *(client.create(CONFIG_MAPS, config_map(f"c{number}", namespace)) for number in range(100))
    )
    assert len({each["metadata"]["uid"] for each in created}) == 100

"""`isvc-localmodel-node`: real downloads to the folders of nodes, on whichever API server."""

from __future__ import annotations

import base64
import json
from typing import ClassVar

from tests.cluster.model_nodes import WEIGHTS, MakeNode, ModelNode, Stall, gone
from tests.unit.pods.storage_initializer.sites import Answer, Site
from tests.waiting import until

from isvc.api.localmodel import DOWNLOADED, DOWNLOADING, FAILED
from isvc.api.model_downloads import STORAGE, decode_downloads
from isvc.api.resources import CLUSTER_STORAGE_CONTAINERS, LOCAL_MODEL_NODES
from isvc.kube.objects import annotations_of
from isvc.kube.resource import SECRETS, SERVICE_ACCOUNTS
from isvc.toolkit.client import Client


async def test_two_nodes_download_a_model_by_cut_connections_and_share_the_copy_of_two_caches(
    make_node: MakeNode, web: Site
):
    cuts = iter(range(3))

    def cut(answer: Answer) -> bool:
        if next(cuts, None) is None:
            return False
        answer.give(WEIGHTS, cut_after=1 << 20)
        return True

    web.spoil = cut
    source, nodes = f"{web.address}/iris/model.bin", [await make_node("a"), await make_node("b")]
    for node in nodes:
        await node.list_models(iris=source, twin=source)
        node.start()
    for node in nodes:
        download = await node.until("iris", DOWNLOADED)
        assert (download.attempts, download.error) == (1, "")
        assert download.bytes == download.total_bytes
        assert download.bytes >= len(WEIGHTS)
        assert download.seconds is not None
        assert await node.phase("twin") == DOWNLOADED
        assert (node.model(source) / "model.bin").read_bytes() == WEIGHTS
        assert len(await node.jobs()) == 1
        storage = json.loads(annotations_of(await node.read())[STORAGE])[node.group]
        assert (storage["used"], storage["limit"]) == (download.bytes, 1 << 30)
        assert 0 < storage["available"] <= (1 << 30) - storage["used"]
    first, second = nodes
    await first.list_models(twin=source)
    await until(lambda: _keys(first), "the list to be shorter")
    assert (first.model(source) / "model.bin").exists()
    await first.list_models()
    await gone(first.model(source))
    assert (second.model(source) / "model.bin").exists()


async def _keys(node: ModelNode) -> bool:
    return list(((await node.read()).get("status") or {}).get("modelStatus", {})) == ["twin"]


async def test_a_restart_of_the_program_downloads_nothing_and_writes_nothing(make_node: MakeNode, web: Site):
    source, node = f"{web.address}/iris/model.bin", await make_node()
    await node.list_models(iris=source)
    node.start()
    await node.until("iris", DOWNLOADED)
    node.kill()
    before, asked = await node.read(), len(web.requests)
    node.start()
    await node.list_models(iris=source, rose=f"{web.address}/rose/model.bin")
    await node.until("rose", DOWNLOADED)
    assert (await node.download("iris")) == decode_downloads(before)["iris"]
    assert {path for path, _ in web.requests[asked:]} == {"/rose/model.bin"}


async def test_what_leaves_the_list_while_it_is_downloaded_is_gone_and_may_come_back(make_node: MakeNode, web: Site):
    source, node, stall = f"{web.address}/iris/model.bin", await make_node(), Stall(web)
    await node.list_models(iris=source)
    node.start()
    await until(stall.reached.is_set, "half of the model to have come")
    await node.list_models()
    await gone(node.incoming(source).parent)
    assert await node.jobs() == []
    assert not node.model(source).exists()
    stall.go_on.set()
    await node.list_models(iris=source)
    await node.until("iris", DOWNLOADED)
    assert (node.model(source) / "model.bin").read_bytes() == WEIGHTS


async def test_a_model_that_kserve_downloaded_is_not_downloaded_again(make_node: MakeNode, web: Site, client: Client):
    source, node = f"{web.address}/iris/model.bin", await make_node()
    half = f"{web.address}/rose/model.bin"
    for each, content in ((source, WEIGHTS), (half, WEIGHTS[:1000])):
        node.model(each).mkdir(parents=True)
        (node.model(each) / "model.bin").write_bytes(content)
    await node.list_models(iris=source, rose=half)
    await client.patch(
        LOCAL_MODEL_NODES,
        node.name,
        {"status": {"modelStatus": {"iris": DOWNLOADED, "rose": DOWNLOADING}}},
        subresource="status",
    )
    node.start()
    await node.until("rose", DOWNLOADED)
    await node.until("iris", DOWNLOADED)
    assert {path for path, _ in web.requests} == {"/rose/model.bin"}
    assert (node.model(half) / "model.bin").read_bytes() == WEIGHTS[::-1]


def _encode(values: dict[str, str]) -> dict[str, str]:
    return {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}


async def test_credentials_of_a_service_account_and_of_a_storage_key(
    make_node: MakeNode, client: Client, s3_endpoint: str
):
    import boto3

    keys = {"AWS_ACCESS_KEY_ID": "user", "AWS_SECRET_ACCESS_KEY": "password"}
    store = boto3.client(
        "s3",
        endpoint_url=s3_endpoint,
        aws_access_key_id="user",
        aws_secret_access_key="password",
        region_name="us-east-1",
    )
    store.create_bucket(Bucket="models")
    for name in ("iris", "rose"):
        store.put_object(Bucket="models", Key=f"{name}/deep/model.bin", Body=WEIGHTS)
    node = await make_node()
    metadata = {"namespace": node.namespace}
    settings = {
        "serving.kserve.io/s3-endpoint": s3_endpoint.removeprefix("http://"),
        "serving.kserve.io/s3-usehttps": "0",
    }
    settings["serving.kserve.io/s3-region"] = "us-east-1"
    secret = {"metadata": {**metadata, "name": "s3", "annotations": settings}, "data": _encode(keys)}
    await client.create(SECRETS, SECRETS.typed(secret))
    account = {"metadata": {**metadata, "name": "reader"}, "secrets": [{"name": "s3"}]}
    await client.create(SERVICE_ACCOUNTS, SERVICE_ACCOUNTS.typed(account))
    entry = {"type": "s3", "endpoint_url": s3_endpoint, "access_key_id": "user", "secret_access_key": "password"}
    config = {"metadata": {**metadata, "name": "storage-config"}, "data": _encode({"store": json.dumps(entry)})}
    await client.create(SECRETS, SECRETS.typed(config))
    await node.list_models(
        iris={"sourceModelUri": "s3://models/iris", "serviceAccountName": "reader"},
        rose={"sourceModelUri": "s3://models/rose", "storage": {"key": "store"}},
        lily={"sourceModelUri": "s3://models/lily", "storage": {"key": "nobody"}},
    )
    node.start()
    for name in ("iris", "rose"):
        await node.until(name, DOWNLOADED)
        assert (node.model(f"s3://models/{name}") / "deep" / "model.bin").read_bytes() == WEIGHTS
    refused = await node.until("lily", FAILED)
    assert 'storage key "nobody" is not in storage secret "storage-config"' in refused.error


class Hub:
    """Hugging Face's layout: a list of files at a commit, and the files."""

    COMMIT: ClassVar = "c" * 40
    FILES: ClassVar = {"model.bin": WEIGHTS, "deep/config.json": b"{}"}

    def __call__(self, answer: Answer) -> bool:
        path, found = answer.path.partition("?")[0], f"/org/iris/resolve/{self.COMMIT}/"
        if path.startswith("/api/models/org/iris"):
            siblings = [{"rfilename": name, "size": len(content)} for name, content in self.FILES.items()]
            answer.give(json.dumps({"id": "org/iris", "sha": self.COMMIT, "siblings": siblings}).encode())
        elif path.startswith(found):
            answer.give_of_commit(self.FILES[path.removeprefix(found)], self.COMMIT)
        else:
            answer.send_error(404)
        return True


async def test_a_storage_container_for_downloads_brings_a_model_of_the_hub(
    make_node: MakeNode, client: Client, web: Site
):
    web.spoil = Hub()
    env = [{"name": "HF_ENDPOINT", "value": web.address}, {"name": "HF_HUB_DISABLE_XET", "value": "1"}]
    node = await make_node()
    for workload in ("initContainer", "localModelDownloadJob"):
        container = {"name": "hub", "image": "kserve/storage-initializer:latest"}
        spec = {
            "container": {**container, "env": env if workload == "localModelDownloadJob" else []},
            "supportedUriFormats": [{"prefix": "hf://"}],
            "workloadType": workload,
        }
        made = {"metadata": {"name": f"{workload.lower()}-{node.name}"}, "spec": spec}
        await client.create(CLUSTER_STORAGE_CONTAINERS, CLUSTER_STORAGE_CONTAINERS.typed(made))
    await node.list_models(iris="hf://org/iris")
    node.start()
    await node.until("iris", DOWNLOADED)
    for name, content in Hub.FILES.items():
        assert (node.model("hf://org/iris") / name).read_bytes() == content
    for workload in ("initcontainer", "localmodeldownloadjob"):
        await client.delete(CLUSTER_STORAGE_CONTAINERS, f"{workload}-{node.name}")

"""Nodes that keep models, and what happens to them: a kill, a full disk, a lost folder."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.cluster.model_nodes import WEIGHTS, MakeNode, ModelNode, Stall, gone
from tests.unit.pods.storage_initializer.sites import Site
from tests.waiting import until

from isvc.api.localmodel import DOWNLOADED, DOWNLOADING, FAILED, PENDING
from isvc.api.resources import LOCAL_MODEL_NAMESPACE_CACHES, LOCAL_MODEL_NODES
from isvc.kube.resource import JOBS
from isvc.toolkit.client import Client


async def test_a_kill_of_program_and_job_under_way_leaves_no_half_of_a_model(make_node: MakeNode, web: Site):
    source, node, stall = f"{web.address}/iris/model.bin", await make_node(), Stall(web)
    await node.list_models(iris=source)
    node.start()
    await until(stall.reached.is_set, "half of the model to have come")
    await until(lambda: _is_at(node, "iris", DOWNLOADING), "progress")
    node.kill()
    assert not node.model(source).exists()
    for pid in _initializers(node):
        os.kill(pid, signal.SIGKILL)
    stall.go_on.set()
    node.start()
    download = await node.until("iris", DOWNLOADED)
    assert download.attempts == 2
    assert (node.model(source) / "model.bin").read_bytes() == WEIGHTS


async def _is_at(node: ModelNode, name: str, phase: str) -> bool:
    return await node.phase(name) == phase


def _initializers(node: ModelNode) -> list[int]:
    """Returns the storage initializers that write to the node's folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if b"isvc.pods.storage_initializer" in command and str(node.folder).encode() in command:
            found.append(int(process.name))
    assert found
    return found


async def test_a_full_disk_is_an_error_with_a_remedy(make_node: MakeNode, web: Site, tmp_path: Path, namespace: str):
    """The disk of the node's program is a file system of two MiB; that of the Job knows nothing of it."""
    node = await make_node()
    spec = {"sourceModelUri": f"{web.address}/iris/model.bin", "modelSize": "4Mi", "nodeGroups": [node.group]}
    made = {"metadata": {"name": "iris", "namespace": namespace}, "spec": spec}
    await node.client.create(LOCAL_MODEL_NAMESPACE_CACHES, LOCAL_MODEL_NAMESPACE_CACHES.typed(made))
    await node.list_models(iris={"sourceModelUri": spec["sourceModelUri"], "namespace": namespace})
    node.folder.mkdir(parents=True)
    mount = 'mount -t tmpfs -o size=2m tmpfs "$0" && exec "$@"'
    node.start("unshare", "-Urm", "sh", "-c", mount, str(node.folder))
    refused = await node.until(f"{namespace}/iris", FAILED)
    assert "the disk of node" in refused.error
    assert "larger disk" in refused.error
    assert await node.jobs() == []


async def test_a_model_whose_folder_is_lost_is_downloaded_again(make_node: MakeNode, web: Site, client: Client):
    source, node = f"{web.address}/iris/model.bin", await make_node()
    await node.list_models(iris=source)
    node.start()
    await node.until("iris", DOWNLOADED)
    node.model(source).rename(node.folder / "lost")
    node.kill()
    node.start()
    await until(lambda: (node.model(source) / "model.bin").exists(), "the model to be there again", 120.0)
    await node.until("iris", DOWNLOADED)


async def test_two_programs_of_one_node_do_the_work_of_one(make_node: MakeNode, web: Site):
    """As for a moment when a DaemonSet's pod is replaced."""
    node = await make_node()
    sources = {name: f"{web.address}/{name}/model.bin" for name in ("iris", "rose")}
    await node.list_models(**sources)
    node.start()
    first = node.process
    node.start()
    try:
        for name, source in sources.items():
            download = await node.until(name, DOWNLOADED)
            assert (download.attempts, download.error) == (1, "")
            assert (node.model(source) / "model.bin").exists()
        assert len(await node.jobs()) == len(sources)
        assert sorted(path for path, _ in web.requests) == ["/iris/model.bin", "/rose/model.bin"]
    finally:
        assert first is not None
        os.killpg(first.pid, signal.SIGKILL)
        first.wait()


async def test_nodes_that_share_a_folder_keep_what_one_of_them_wants(make_node: MakeNode, web: Site):
    """As on a volume of NFS that is mounted on every node: a download may be made twice, and is whole."""
    first, second = await make_node("a"), await make_node("b")
    first.folder.mkdir(parents=True)
    second.folder.symlink_to(first.folder)
    source = f"{web.address}/iris/model.bin"
    for node in (first, second):
        await node.list_models(iris=source)
        node.start()
    for node in (first, second):
        await node.until("iris", DOWNLOADED)
    await second.list_models()
    await until(lambda: _is_at(second, "iris", ""), "the second to have forgotten it")
    assert (first.model(source) / "model.bin").read_bytes() == WEIGHTS
    await first.list_models()
    await gone(first.model(source))


async def test_a_disk_that_takes_no_more_keeps_what_it_has(make_node: MakeNode, web: Site):
    """What is in the way here is a file; on a full disk it is the disk."""
    source, node = f"{web.address}/iris/model.bin", await make_node()
    await node.list_models(iris=source)
    node.start()
    await node.until("iris", DOWNLOADED)
    rose = f"{web.address}/rose/model.bin"
    node.incoming(rose).parent.write_text("in the way")
    await node.list_models(iris=source, rose=rose)
    refused = await node.until("rose", FAILED)
    assert "Not a directory" in refused.error
    assert await node.phase("iris") == DOWNLOADED


async def test_a_node_that_is_deleted_while_it_downloads_may_come_back(make_node: MakeNode, web: Site, client: Client):
    """Its list goes with it; Kubernetes deletes the Jobs of that list a moment later, which is done here by hand."""
    source, node, stall = f"{web.address}/iris/model.bin", await make_node(), Stall(web)
    await node.list_models(iris=source)
    node.start()
    await until(stall.reached.is_set, "half of the model to have come")
    (job,) = await node.jobs()
    await client.delete(LOCAL_MODEL_NODES, node.name)
    await node.list_models(iris=source)
    await until(lambda: _is_at(node, "iris", PENDING), "the new list to wait for the pod of the old one")
    await client.delete(JOBS, job["metadata"]["name"], node.namespace, propagation="Background")
    stall.go_on.set()
    await node.until("iris", DOWNLOADED)
    assert (node.model(source) / "model.bin").read_bytes() == WEIGHTS

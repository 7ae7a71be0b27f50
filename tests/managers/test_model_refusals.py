"""Downloads to nodes that fail or are refused: what is said, and when they are tried again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from tests.cluster.model_nodes import DEADLINE, WEIGHTS, MakeNode, ModelNode
from tests.unit.pods.storage_initializer.sites import Answer, Site
from tests.waiting import until

from isvc.api.localmodel import DOWNLOADED, FAILED
from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NODE_GROUPS
from isvc.controllers.localmodelnode.plan import FIRST_PAUSE, pause_after
from isvc.kube.resource import EVENTS, JOBS
from isvc.kube.timestamps import seconds_between
from isvc.toolkit.client import Client


class RefuseUntilTold:
    """Says 404 of a file that is not there yet, and counts how often."""

    def __init__(self, web: Site, path: str) -> None:
        self.refusals, self.told, self._path = 0, False, path
        web.files[path] = WEIGHTS
        web.spoil = self

    def __call__(self, answer: Answer) -> bool:
        if self.told or answer.path != self._path:
            return False
        self.refusals += 1
        answer.send_error(404)
        return True


async def test_a_download_that_fails_says_why_and_is_tried_again(make_node: MakeNode, web: Site, client: Client):
    source, node, server = f"{web.address}/later/model.bin", await make_node(), RefuseUntilTold(web, "/later/model.bin")
    await node.list_models(later=source, iris=f"{web.address}/iris/model.bin")
    node.start()
    failed = await node.until("later", FAILED)
    server.told = True
    assert "404" in failed.error
    assert not node.model(source).exists()
    download = await node.until("later", DOWNLOADED)
    assert (download.attempts, download.error) == (server.refusals + 1, "")
    await node.until("iris", DOWNLOADED)
    events = (await client.list(EVENTS, "default")).items
    said = [event["message"] for event in events if event["involvedObject"]["name"] == node.name]
    assert any("404" in message for message in said)


async def test_a_failed_job_that_somebody_deletes_is_tried_again_at_once(
    make_node: MakeNode, web: Site, client: Client
):
    """After so many attempts the next would come later than anybody waits here."""
    node, server = await make_node(), RefuseUntilTold(web, "/later/model.bin")
    await node.list_models(later=f"{web.address}/later/model.bin")
    node.start()
    while pause_after((await node.until("later", FAILED)).attempts) <= DEADLINE:
        await _delete_jobs(node, client)
    server.told = True
    await _delete_jobs(node, client)
    await node.until("later", DOWNLOADED)


async def _delete_jobs(node: ModelNode, client: Client) -> None:
    before = (await node.download("later")).attempts
    for job in await node.jobs():
        await client.delete(JOBS, job["metadata"]["name"], node.namespace, propagation="Background")

    async def is_tried_again() -> bool:
        return (await node.download("later")).attempts > before

    await until(is_tried_again, "another attempt", DEADLINE)


async def test_a_model_that_its_group_has_no_space_for_is_refused_with_the_numbers(
    make_node: MakeNode, web: Site, client: Client
):
    node = await make_node(limit="5Mi")
    name = f"large-{node.name}"
    source = f"{web.address}/iris/model.bin"
    spec = {"sourceModelUri": source, "modelSize": "6Mi", "nodeGroups": [node.group]}
    await client.create(LOCAL_MODEL_CACHES, LOCAL_MODEL_CACHES.typed({"metadata": {"name": name}, "spec": spec}))
    await node.list_models(**{name: source})
    node.start()
    refused = await node.until(name, FAILED)
    assert "6291456" in refused.error or "6.0Mi" in refused.error or "6144.0Ki" in refused.error
    assert "storageLimit" in refused.error
    assert await node.jobs() == []
    assert web.requests == []
    await client.patch(LOCAL_MODEL_NODE_GROUPS, node.group, {"spec": {"storageLimit": "8Mi"}})
    await node.until(name, DOWNLOADED)
    await client.delete(LOCAL_MODEL_CACHES, name)


async def test_a_model_that_turns_out_larger_than_the_space_is_refused_before_it_is_downloaded(
    make_node: MakeNode, web: Site
):
    source, node = f"{web.address}/iris/model.bin", await make_node(limit="3Mi")
    await node.list_models(iris=source)
    node.start()
    refused = await node.until("iris", FAILED)
    assert "4.0 MiB" in refused.error
    assert "3.0 MiB" in refused.error
    assert not node.model(source).exists()


async def test_another_folder_in_the_group_than_in_the_program_is_said_and_nothing_is_downloaded(
    make_node: MakeNode, web: Site
):
    node = await make_node()
    await node.list_models(iris=f"{web.address}/iris/model.bin")
    node.start(host_path="/elsewhere")
    refused = await node.until("iris", FAILED)
    assert f"/{node.name}" in refused.error
    assert "/elsewhere" in refused.error
    assert await node.jobs() == []


async def test_a_job_whose_model_arrives_elsewhere_does_not_loop(make_node: MakeNode, web: Site, tmp_path: Path):
    """Nobody said what the node calls the folder: only the result shows that it is another."""
    node = await make_node()
    await node.list_models(iris=f"{web.address}/iris/model.bin")
    node.start(folder=tmp_path / "another")
    failed = await node.until("iris", FAILED)
    assert "nothing is in" in failed.error
    assert node.group in failed.error
    jobs = sorted(await node.jobs(), key=lambda job: str(job["metadata"]["creationTimestamp"]))
    for first, second in pairwise(jobs):
        pause = seconds_between(first["status"]["completionTime"], second["metadata"]["creationTimestamp"])
        assert pause >= FIRST_PAUSE - 1  # times are in seconds

"""Takes over model caches from KServe's own two programs while they live, and gives them back.

    python -m tests.recorded_cluster.live_takeover_of_caches CHECKOUT

CHECKOUT is one of KServe, whose manager of caches and program of a node are built from it with Go; the latter insists
on the ports 8080 and 8081. On a real kube-apiserver they download a model for a cache of the cluster and one for a
cache of a namespace, and make volumes for services. Then ours are started over what is there, and after them KServe's
again. Every object that was written is printed with what changed in it. It fails if a model was downloaded again or
its folder changed, or if anything but statuses and annotations was written.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.ports import free_port
from tests.recorded_cluster.live_takeover import changes
from tests.recorded_cluster.model_caches import KINDS, SYSTEM, Story, begin_story
from tests.recorded_cluster.servers import BIN, AuditedServer, conform
from tests.unit.pods.storage_initializer.sites import private_ca
from tests.waiting import until

from isvc.api.localmodel import DOWNLOADED
from isvc.api.model_downloads import DOWNLOADS
from isvc.api.resources import LOCAL_MODEL_CACHES, LOCAL_MODEL_NAMESPACE_CACHES
from isvc.kube.objects import Key, Object, annotations_of
from isvc.kube.resource import JOBS as DOWNLOAD_JOBS
from isvc.kube.resource import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from isvc.toolkit.client import Client

MODELS = (("iris", ""), ("rose", "default"))
SETTLED = 15.0  # seconds: KServe's program of a node looks at its folders every ten here
HARMLESS = re.compile(r"^wrote \S+ (status|metadata\.(annotations|resourceVersion|generation))\b")


class Programs:
    """The manager of caches and the program of a node, KServe's or ours."""

    def __init__(self, server: AuditedServer, story: Story, folder: Path) -> None:
        self._kubeconfig, self._story, self._folder = server.cluster.kubeconfig, story, folder
        certificates = folder / "k8s-webhook-server" / "serving-certs"
        certificates.mkdir(parents=True)
        private_ca(certificates)

    @contextlib.contextmanager
    def ours(self) -> Iterator[None]:
        self._story.node.start()
        with self._run(f"{BIN}/localmodel-manager", f"--webhook-port={free_port()}", *self._addresses()):
            yield
        self._story.node.kill()

    @contextlib.contextmanager
    def kserve(self) -> Iterator[None]:
        """Its program of a node knows one folder alone, which it gets in a file system view of its own."""
        models = self._story.node.folder
        models.mkdir(parents=True, exist_ok=True)
        view = f"mkdir -p /mnt/models && mount --bind {models} /mnt/models && exec {self._folder}/localmodelnode"
        manager = self._run(f"{self._folder}/localmodel", f"--webhook-port={free_port()}", *self._addresses())
        with manager, self._run("unshare", "-Urm", "sh", "-c", view):
            yield

    def _addresses(self) -> list[str]:
        return [f"--metrics-addr=127.0.0.1:{free_port()}", f"--health-probe-addr=127.0.0.1:{free_port()}"]

    @contextlib.contextmanager
    def _run(self, *command: str) -> Iterator[None]:
        env = {**os.environ, "KUBECONFIG": str(self._kubeconfig), "POD_NAMESPACE": SYSTEM, "TMPDIR": str(self._folder)}
        env["NODE_NAME"] = self._story.node.name
        with (self._folder / f"{Path(command[0]).name}.log").open("ab") as log:
            process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        try:
            yield
            if process.poll() is not None:
                raise RuntimeError((self._folder / f"{Path(command[0]).name}.log").read_text()[-3000:])
        finally:
            process.terminate()
            process.wait()


async def read_all(client: Client) -> dict[str, Object]:
    """Returns all objects of caches, as they are."""
    found = {}
    for resource in (*KINDS, PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS, DOWNLOAD_JOBS):
        for obj in (await client.list(resource)).items:
            obj["metadata"].pop("managedFields", None)
            found[f"{resource.kind}/{Key.of(obj)}"] = obj
    return found


def read_folders(story: Story) -> dict[str, tuple[int, bytes]]:
    """Returns the inode and the content of each model."""
    folders = {name: story.node.model(f"{story.web.address}/{name}") for name, _ in MODELS}
    return {name: (folder.stat().st_ino, (folder / name).read_bytes()) for name, folder in folders.items()}


async def settle(client: Client) -> None:
    """Waits until nothing has changed for a while."""
    loop, before = asyncio.get_running_loop(), await read_all(client)
    since = loop.time()
    while loop.time() - since < SETTLED:
        await asyncio.sleep(1)
        if (now := await read_all(client)) != before:
            before, since = now, loop.time()


async def make_caches(story: Story) -> None:
    await story.add_node()
    for name, namespace in MODELS:
        await story.cache(name, namespace)
        await story.serve(name, namespace)

    async def is_everywhere() -> bool:
        kinds = {"": LOCAL_MODEL_CACHES, "default": LOCAL_MODEL_NAMESPACE_CACHES}
        found = [await story.client.get(kinds[namespace], name, namespace) for name, namespace in MODELS]
        return all(((each.get("status") or {}).get("copies") or {}).get("available") == 1 for each in found)

    await until(is_everywhere, "KServe's programs to bring the models", 180)


async def hand_over(programs: Programs, story: Story) -> list[str]:
    """Hands the caches of KServe's programs to ours, and back; returns what must not have happened."""
    client, node, harm = story.client, story.node, list[str]()
    with programs.kserve():
        await make_caches(story)
        await settle(client)
    before, folders, asked = await read_all(client), read_folders(story), len(story.web.requests)
    print(f"KServe's programs brought {len(folders)} models by {asked} requests", flush=True)
    for title, start in (("ours over KServe's", programs.ours), ("KServe's over ours", programs.kserve)):
        with start():
            if start == programs.ours:
                await until(lambda: _has_annotations(story), "our program to have seen the list", 120)
            await settle(client)
        after = await read_all(client)
        found = [*changes(before, after)]
        print(f"{title}: {len(found)} changes", *found, sep="\n  ", flush=True)
        harm += [f"{title}: {line}" for line in found if not HARMLESS.match(line)]
        if read_folders(story) != folders or len(story.web.requests) != asked:
            harm.append(f"{title}: a model was downloaded again, or its folder changed")
        before = after
    for name, namespace in MODELS:
        if await node.phase(f"{namespace}/{name}".strip("/")) != DOWNLOADED:
            harm.append(f"{name} is not there any longer")
    return harm


async def _has_annotations(story: Story) -> bool:
    return DOWNLOADS in annotations_of(await story.node.read())


async def run(folder: Path) -> list[str]:
    conform()
    server = AuditedServer()
    administrator = server.cluster.kubeconfig
    try:
        async with begin_story(administrator, lambda: administrator, folder, reconcilationFrequencyInSecs=10) as story:
            return await hand_over(Programs(server, story, folder), story)
    finally:
        server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    checkout = parser.parse_args().checkout
    with tempfile.TemporaryDirectory() as folder:
        packages = ["./cmd/localmodel", "./cmd/localmodelnode"]
        subprocess.run(["go", "build", "-o", f"{folder}/", *packages], cwd=checkout, check=True)
        harm = asyncio.run(run(Path(folder)))
    if harm:
        sys.exit("\n  ".join(["this must not happen:", *harm]))
    print("passed: no model was downloaded again, and nothing but statuses and annotations was written")


if __name__ == "__main__":
    main()

"""The dashboard with many services: how long pages take on the server, what an open page costs, and many readers.

Services, Deployments, ReplicaSets and pods are written to an embedded API server as controllers would leave them, one
service in ten not ready. The dashboard runs as its users run it, in a process of its own, whose CPU and memory are read
from /proc. `--before` is the interpreter of another checkout's environment, whose dashboard shows the same services in
the same run, first.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import servers

from isvc.api.kinds.crds import crds
from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.owners import controller_ref
from isvc.kube.resource import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, PODS, REPLICA_SETS, Resource
from isvc.toolkit.client import Client, PatchKind, kubeconfig

ROOT = Path(__file__).parents[1]
AT_ONCE = 16


async def populate(client: Client, number: int) -> None:
    for crd in crds(described=True):
        await client.create(CUSTOM_RESOURCE_DEFINITIONS, crd)
    await asyncio.sleep(3)  # until all of them are served
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(each: int) -> None:
        async with slots:
            await family(client, f"model-{each:04}", ready=each % 10 != 0)

    await asyncio.gather(*map(one, range(number)))


async def family(client: Client, name: str, *, ready: bool) -> None:
    """A service and what its controllers would have made for it."""
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/iris"}
    labels = {"serving.kserve.io/inferenceservice": name, "component": "predictor", "app": f"isvc.{name}"}
    pod = {"containers": [{"name": "kserve-container", "image": "sklearn:1", "args": [f"--model_name={name}"]}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    workload = {"replicas": 1, "selector": {"matchLabels": {"app": f"isvc.{name}"}}, "template": template}
    condition = _condition(ready=ready)
    service = await made(client, INFERENCE_SERVICES, name, {"predictor": {"model": model}}, {}, None)
    await status(client, INFERENCE_SERVICES, name, {"conditions": [condition], "url": f"http://{name}.example.com"})
    deployment = await made(client, DEPLOYMENTS, f"{name}-predictor", workload, labels, service)
    await status(
        client,
        DEPLOYMENTS,
        f"{name}-predictor",
        {"availableReplicas": int(ready), "readyReplicas": int(ready), "replicas": 1},
    )
    replicas = await made(client, REPLICA_SETS, f"{name}-predictor-1", workload, labels, deployment)
    await made(client, PODS, f"{name}-predictor-1-a", pod, labels, replicas)
    state = {"running": {}} if ready else {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    container = {
        "name": "kserve-container",
        "state": state,
        "ready": ready,
        "restartCount": 0,
        "image": "",
        "imageID": "",
    }
    said = {"phase": "Running" if ready else "Pending", "conditions": [condition], "containerStatuses": [container]}
    await status(client, PODS, f"{name}-predictor-1-a", said)


def _condition(*, ready: bool) -> dict[str, str]:
    return {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-11-16T00:00:00Z"}


async def made(
    client: Client, resource: Resource, name: str, spec: dict[str, Any], labels: dict[str, str], owner: Any
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "labels": labels}
    if owner:
        metadata["ownerReferences"] = [controller_ref(owner)]
    manifest = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}
    return {**manifest, **await client.create(resource, manifest)}


async def status(client: Client, resource: Resource, name: str, value: dict[str, Any]) -> None:
    await client.patch(resource, name, {"status": value}, "default", kind=PatchKind.MERGE, subresource="status")


class Process:
    """`isvc dashboard`, and what it uses."""

    def __init__(self, python: str, config: Path) -> None:
        command = [python, "-u", "-c", "from isvc.cli import main; main()", "dashboard", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--kubeconfig", str(config)], stdout=subprocess.PIPE, text=True, cwd=config.parent
        )
        assert self.process.stdout is not None
        self.base, _, self.token = self.process.stdout.readline().split()[-1].partition("/?token=")

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(30)

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def measure(process: Process, client: Client, readers: int) -> None:
    headers = {"Authorization": f"Bearer {process.token}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(process.base, headers=headers, connector=connector) as session:
        started = time.perf_counter()
        size = await page(session, "/")
        first = 1000 * (time.perf_counter() - started)
        print(f"first look, as soon as the link is printed: {first:.0f} ms, page {size / 1e3:.0f} KB")
        for path in ("/", "/?q=model-05", "/?page=7", "/?output=json", "/services/isvc/default/model-0010"):
            times = []
            for _ in range(20):
                started = time.perf_counter()
                await page(session, path)
                times.append(1000 * (time.perf_counter() - started))
            print(f"  {path}: median {median(times):.1f} ms, most {max(times):.1f} ms")
        await asyncio.sleep(15)  # the causes of the first page are being found meanwhile
        print(f"memory: {process.megabytes:.0f} MB")
        await idle(process, session, 1)
        await idle(process, session, readers)
        await news(process, session, client, readers)
        print(f"memory at the end: {process.megabytes:.0f} MB")


async def first_look(process: Process) -> None:
    headers = {"Authorization": f"Bearer {process.token}"}
    async with aiohttp.ClientSession(process.base, headers=headers) as session:
        started = time.perf_counter()
        await page(session, "/")
        print(f"first look five seconds after the start: {1000 * (time.perf_counter() - started):.0f} ms")


async def page(session: aiohttp.ClientSession, path: str) -> int:
    async with session.get(path) as answer:
        assert answer.status == 200, answer.status
        return len(await answer.read())


async def idle(process: Process, session: aiohttp.ClientSession, readers: int) -> None:
    """What pages cost that are open while nothing happens."""
    streams = [await session.get("/live") for _ in range(readers)]
    await asyncio.sleep(3)
    before = process.cpu
    await asyncio.sleep(10)
    print(f"{readers} open and idle: {10 * (process.cpu - before):.2f} % of a core, {process.megabytes:.0f} MB")
    for stream in streams:
        stream.close()


async def news(process: Process, session: aiohttp.ClientSession, client: Client, readers: int) -> None:
    """How long until every reader knows that a service on the page has become ready."""
    streams = [await session.get("/live") for _ in range(readers)]
    silent = await session.get("/live")  # nobody reads this one
    for stream in streams:
        await stream.content.readuntil(b"\n\n")
    before, started = process.cpu, time.perf_counter()
    await status(client, INFERENCE_SERVICES, "model-0000", {"conditions": [_condition(ready=True)]})
    await asyncio.gather(*(stream.content.readuntil(b"\n\n") for stream in streams))
    seconds = time.perf_counter() - started
    print(f"a change reaches {readers} readers after {1000 * seconds:.0f} ms, {process.cpu - before:.2f} s of CPU")
    for stream in (*streams, silent):
        stream.close()


async def compare(pythons: Iterable[str], number: int, readers: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        cluster = servers.start("embedded", Path(folder))
        try:
            async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client:
                started = time.perf_counter()
                await populate(client, number)
                print(f"{number} services written in {time.perf_counter() - started:.0f} s")
                for python in pythons:
                    print(python)
                    await run(python, cluster.kubeconfig, client, readers)
                    await status(client, INFERENCE_SERVICES, "model-0000", {"conditions": [_condition(ready=False)]})
        finally:
            cluster.stop()


async def run(python: str, config: Path, client: Client, readers: int) -> None:
    process = Process(python, config)
    try:
        await measure(process, client, readers)
    finally:
        process.end()
    process = Process(python, config)
    try:
        await asyncio.sleep(5)  # as long as a person takes to open the link
        await first_look(process)
    finally:
        process.end()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=1000)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--before", metavar="PYTHON", help="interpreter of another checkout's environment")
    chosen = parser.parse_args()
    asyncio.run(compare(filter(None, (chosen.before, sys.executable)), chosen.n, chosen.readers))

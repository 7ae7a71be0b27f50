"""What localmodel-manager asks of a kube-apiserver: 500 model caches on 50 nodes, from their creation to a restart.

Every cache is on every node. No node downloads: what their programs would write is written here, as one status for each
node. Requests are those that the manager counts itself, CPU is that of its process.

    bench/caches.py [--caches 500] [--nodes 50] [--seconds 30]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import definitions
from tests.ports import free_port
from tests.servers import Cluster, discard, start

from isvc.api.localmodel import DOWNLOADED
from isvc.api.resources import (
    INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
from isvc.kube.objects import Object
from isvc.kube.resource import CONFIG_MAPS, NAMESPACES, NODES, Resource
from isvc.toolkit.client import Client, kubeconfig

KINDS = (
    INFERENCE_SERVICES,
    LOCAL_MODEL_CACHES,
    LOCAL_MODEL_NAMESPACE_CACHES,
    LOCAL_MODEL_NODE_GROUPS,
    LOCAL_MODEL_NODES,
)
JOBS, GROUP = "kserve-localmodel-jobs", "workers"
WRITES = ("POST", "PUT", "PATCH", "DELETE")
_REQUESTS = re.compile(r'^rest_client_requests_total\{.*method="(\w+)".*\} (\S+)$', re.MULTILINE)
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Managed:
    """A running localmodel-manager."""

    process: subprocess.Popen[bytes]
    metrics: int

    def requests(self) -> Counter[str]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics") as answer:
            found = _REQUESTS.findall(answer.read().decode())
        counts: Counter[str] = Counter()
        for method, count in found:
            counts[method] += int(float(count))
        return counts

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()


def run_manager(cluster: Cluster) -> Managed:
    metrics, probes = free_port(), free_port()
    flags = ["--leader-elect=false", f"--webhook-port={free_port()}", f"--metrics-addr=127.0.0.1:{metrics}"]
    flags.append(f"--health-probe-addr=127.0.0.1:{probes}")
    program = Path(sys.executable).parent / "localmodel-manager"
    env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    process = subprocess.Popen([program, *flags], env=env, stderr=subprocess.DEVNULL)
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{probes}/readyz").close()
            return Managed(process, metrics)
        except OSError:
            time.sleep(0.05)


class Bench:
    def __init__(self, client: Client, caches: int, nodes: int) -> None:
        self.client, self.caches, self.nodes = client, caches, nodes

    async def create(self, resource: Resource, name: str, namespace: str = "", **fields: object) -> None:
        metadata: Object = {"name": name, **({"namespace": namespace} if namespace else {})}
        metadata["labels"] = fields.pop("labels", {})
        await self.client.create(resource, resource.typed({"metadata": metadata, **fields}))

    async def fill(self) -> None:
        """Makes the cluster: nodes that are ready, and their group."""
        await definitions.install(self.client, *map(definitions.ours, KINDS))
        for name in ("kserve", JOBS):
            await self.create(NAMESPACES, name)
        settings = {"localModel": json.dumps({"enabled": True, "jobNamespace": JOBS})}
        await self.create(CONFIG_MAPS, "inferenceservice-config", "kserve", data=settings)
        for number in range(self.nodes):
            await self.create(NODES, f"node-{number}", labels={"pool": "models"})
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            await self.client.patch(NODES, f"node-{number}", ready, subresource="status")
        terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["models"]}]}]
        shared = {"accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
        volume = {**shared, "capacity": {"storage": "1Ti"}, "hostPath": {"path": "/models"}}
        volume["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        claim = {**shared, "resources": {"requests": {"storage": "1Ti"}}}
        spec = {"storageLimit": "1Ti", "persistentVolumeSpec": volume, "persistentVolumeClaimSpec": claim}
        await self.create(LOCAL_MODEL_NODE_GROUPS, GROUP, spec=spec)

    async def create_caches(self) -> None:
        for first in range(0, self.caches, 20):
            await asyncio.gather(*(self._create_cache(number) for number in range(first, min(first + 20, self.caches))))

    async def _create_cache(self, number: int) -> None:
        spec = {"sourceModelUri": f"hf://org/model-{number}", "modelSize": "1Gi", "nodeGroups": [GROUP]}
        await self.create(LOCAL_MODEL_CACHES, f"model-{number}", spec=spec)

    async def report(self) -> None:
        """Says that every node has every model, as their programs would."""
        states = {f"model-{number}": DOWNLOADED for number in range(self.caches)}
        for number in range(self.nodes):
            status = {"status": {"modelStatus": states}}
            await self.client.patch(LOCAL_MODEL_NODES, f"node-{number}", status, subresource="status")

    async def has_copies(self, field: str) -> bool:
        found = (await self.client.list(LOCAL_MODEL_CACHES)).items
        counts = [(each.get("status") or {}).get("copies", {}).get(field) for each in found]
        return len(counts) == self.caches and set(counts) == {self.nodes}


async def measure(title: str, managed: Managed, caches: int, work: Callable[[], Awaitable[object]]) -> None:
    """Prints what the manager asks for, and takes, until it has nothing more to do."""
    before, cpu, begin = managed.requests(), managed.cpu(), time.monotonic()
    await work()
    end = await _settle(managed)
    used = managed.requests() - before
    writes, total = sum(used[method] for method in WRITES), sum(used.values())
    seconds, spent = end - begin, managed.cpu() - cpu
    print(
        f"{title:34} {writes:6} writes {total - writes:4} reads {total / caches:6.2f} requests/cache"
        f" {1000 * spent / caches:7.2f} ms CPU/cache {seconds:6.1f} s",
        flush=True,
    )


async def _settle(managed: Managed) -> float:
    """Waits until nothing was asked for and nothing was done for three seconds; returns when that began."""
    since, last = time.monotonic(), (managed.requests(), managed.cpu())
    while time.monotonic() - since < 3:
        await asyncio.sleep(0.5)
        now = (managed.requests(), managed.cpu())
        if now[0] != last[0] or now[1] - last[1] > 0.1:
            since, last = time.monotonic(), now
    return since


async def run(cluster: Cluster, caches: int, nodes: int, seconds: int) -> None:
    async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client:
        bench = Bench(client, caches, nodes)
        await bench.fill()
        print(f"{caches} caches, each on {nodes} nodes")
        managed = run_manager(cluster)
        try:
            await measure("created", managed, caches, bench.create_caches)
            assert await bench.has_copies("total")
            await measure("every node has every model", managed, caches, bench.report)
            assert await bench.has_copies("available")
            await measure(f"settled, {seconds} s", managed, caches, lambda: asyncio.sleep(seconds))
        finally:
            managed.stop()
        managed = run_manager(cluster)
        try:
            await _settle(managed)
            used = managed.requests()
            writes = sum(used[method] for method in WRITES)
            print(f"{'restart':34} {writes:6} writes {sum(used.values()) - writes:4} reads {managed.cpu():.1f} s CPU")
        finally:
            managed.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--caches", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        cluster = start("kube-apiserver", Path(folder))
        try:
            asyncio.run(run(cluster, given.caches, given.nodes, given.seconds))
        finally:
            discard(cluster)


if __name__ == "__main__":
    main()

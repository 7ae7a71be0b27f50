"""A day of trouble, compressed: `isvc-manager` on a real kube-apiserver while everything around it misbehaves.

Rounds of faults alternate with quiet. In each quiet the manager has to settle, and must then write nothing; at the end
its memory must not have grown, and the cluster has to look as if the last specs had been applied to an empty one.

    python -m tests.production.soak --minutes 20 --services 100 --seed 1
"""

from __future__ import annotations

import argparse
import asyncio
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests import servers
from tests.cluster.faulty_proxy import FaultyProxy
from tests.cluster.lifecycles.picture import picture
from tests.production.balancer import Balancer
from tests.production.installation import Installation, Replica
from tests.waiting import until

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.errors import ApiError, NotFound
from isvc.kube.objects import Object, dig, name_of
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, INGRESSES, NAMESPACES, SERVICES
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.failure import ClusterError

CHILDREN = (DEPLOYMENTS, SERVICES, HORIZONTAL_POD_AUTOSCALERS, INGRESSES)
TROUBLED, FRESH = "troubled", "untouched"
FAULTS_A_ROUND = 25
QUIET_SECONDS = 15.0
MEMORY_GROWTH = 1.15  # between the second quiet and the last
LIBFAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
AVAILABLE = [
    {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"},
    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"},
]
UNAVAILABLE = [{"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable", "message": "0 of 1"}]


def service(name: str, namespace: str, predictor: Object | None = None) -> Object:
    model = {"modelFormat": {"name": "sklearn"}, "storageUri": f"gs://models/{name}"}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"predictor": {"model": model, "minReplicas": 1, "maxReplicas": 3, **(predictor or {})}},
    }


@dataclass
class Soak:
    installation: Installation
    proxy: FaultyProxy
    replica: Replica
    clock: Path
    services: int
    chance: random.Random
    faults: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)

    @property
    def client(self) -> Client:
        return self.installation.client

    # -- faults -----------------------------------------------------------------------------------------------------

    async def flap(self) -> None:
        """A Deployment becomes unavailable and available again, several times."""
        name = f"{self._any()}-predictor"
        for conditions in (UNAVAILABLE, AVAILABLE) * 3:
            await self._set_conditions(name, conditions)

    async def bend(self) -> None:
        """Somebody edits a child by hand. (An autoscaler's edit is undone, as in KServe, when its service changes.)"""
        resource, patch = self.chance.choice(
            [
                (DEPLOYMENTS, {"spec": {"template": {"spec": {"nodeSelector": {"bent": "true"}}}}}),
                (SERVICES, {"spec": {"selector": {"bent": "true"}}}),
            ]
        )
        await self.client.patch(resource, f"{self._any()}-predictor", patch, TROUBLED)

    async def delete_child(self) -> None:
        resource, suffix = self.chance.choice(
            [(DEPLOYMENTS, "-predictor"), (SERVICES, "-predictor"), (INGRESSES, ""), (SERVICES, "")]
        )
        with suppress(NotFound):
            await self.client.delete(resource, f"{self._any()}{suffix}", TROUBLED)

    async def edit(self) -> None:
        replicas = self.chance.randint(1, 4)
        patch = {"spec": {"predictor": {"minReplicas": replicas, "maxReplicas": replicas + 2}}}
        await self.client.patch(INFERENCE_SERVICES, self._any(), patch, TROUBLED)

    async def recreate(self) -> None:
        name = self._any()
        await self.client.delete(INFERENCE_SERVICES, name, TROUBLED)

        async def gone() -> bool:
            with suppress(NotFound):
                await self.client.get(INFERENCE_SERVICES, name, TROUBLED)
                return False
            return True

        await until(gone, f"{name} is gone", within=300, every=0.1)
        await self.client.create(INFERENCE_SERVICES, service(name, TROUBLED))

    async def cut_watches(self) -> None:
        self.proxy.cut()

    async def fail_writes(self) -> None:
        self.proxy.failing = 8

    async def hide_the_api_server(self) -> None:
        self.proxy.go_away()
        await asyncio.sleep(self.chance.uniform(0.5, 4))
        self.proxy.come_back()

    async def restart_the_api_server(self) -> None:
        cluster = self.installation.cluster
        old = cluster.processes.pop()
        old.kill()
        old.wait()
        assert isinstance(old.args, list)
        cluster.processes.append(servers._spawn([str(each) for each in old.args], cluster.dir / "kube-apiserver.log"))
        await asyncio.to_thread(servers._wait_until_ready, cluster)

    async def jump_the_clock(self) -> None:
        hours = self.chance.choice([-6, -1, 1, 5, 24])
        self.clock.write_text(f"{hours:+d}h")

    # -- what has to hold -------------------------------------------------------------------------------------------

    async def trouble(self) -> None:
        everyday: list[Callable[[], Awaitable[None]]] = [
            self.flap,
            self.bend,
            self.delete_child,
            self.edit,
            self.recreate,
            self.cut_watches,
            self.fail_writes,
        ]
        rare = [self.hide_the_api_server, self.restart_the_api_server, self.jump_the_clock]
        chosen = [*self.chance.choices(everyday, k=FAULTS_A_ROUND), self.chance.choice(rare)]
        self.chance.shuffle(chosen)
        for fault in chosen:
            self.faults[fault.__name__] += 1
            for _ in range(20):
                try:
                    await fault()
                    break
                except (ApiError, ClusterError):  # the API server is just coming back, or the child is not there yet
                    await asyncio.sleep(0.2)
            assert self.replica.alive, self.replica.log.read_text()[-3000:]

    async def quiet(self, namespace: str = TROUBLED) -> None:
        """Everything becomes healthy; then nobody writes any more."""
        self.proxy.failing = 0
        await until(partial(self._healthy, namespace), "all services are ready", within=300, every=1.0)
        await until(self._silent, "the manager stops writing", within=180, every=0.1)
        before = len(self._writes())
        await asyncio.sleep(QUIET_SECONDS)
        if writes := self._writes()[before:]:
            raise SystemExit(f"hot loop: {len(writes)} writes in {QUIET_SECONDS:.0f} quiet seconds: {writes[:10]}")
        self.memory.append(_resident(self.replica.process.pid))

    def _writes(self) -> list[str]:
        return [each for each in self.proxy.writes if "/leases/" not in each]

    async def _silent(self) -> bool:
        """Ten seconds without a write: retries that wait, and watches that were cut, have caught up."""
        before = len(self._writes())
        await asyncio.sleep(10)
        return len(self._writes()) == before

    async def _healthy(self, namespace: str) -> bool:
        with suppress(ApiError, ClusterError):
            for deployment in (await self.client.list(DEPLOYMENTS, namespace)).items:
                if dig(deployment, "status", "conditions", 0, "status") != "True":
                    await self._set_conditions(name_of(deployment), AVAILABLE, namespace)
            services = (await self.client.list(INFERENCE_SERVICES, namespace)).items
            return len(services) == self.services and all(map(_is_ready, services))
        return False

    async def compare_with_fresh(self) -> None:
        """The same specs in an empty namespace give the same children and the same status."""
        await self.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": FRESH}})
        for each in (await self.client.list(INFERENCE_SERVICES, TROUBLED)).items:
            metadata = {"name": name_of(each), "namespace": FRESH}
            await self.client.create(INFERENCE_SERVICES, {**each, "metadata": metadata, "status": {}})
        await self.quiet(FRESH)
        troubled, fresh = [await picture(self.client, each, CHILDREN) for each in (TROUBLED, FRESH)]
        different = [key for key in {*troubled, *fresh} if troubled.get(key) != fresh.get(key)]
        if different:
            key = different[0]
            raise SystemExit(f"{len(different)} objects differ, {key}:\n{troubled.get(key)}\n{fresh.get(key)}")

    def _any(self) -> str:
        return f"s{self.chance.randrange(self.services)}"

    async def _set_conditions(self, name: str, conditions: list[Object], namespace: str = TROUBLED) -> None:
        patch = {"status": {"conditions": conditions}}
        with suppress(NotFound):
            await self.client.patch(DEPLOYMENTS, name, patch, namespace, subresource="status")


def _is_ready(each: Object) -> bool:
    conditions = {condition["type"]: condition["status"] for condition in dig(each, "status", "conditions") or ()}
    observed = dig(each, "status", "observedGeneration")
    return conditions.get("Ready") == "True" and observed == each["metadata"]["generation"]


def _resident(pid: int) -> int:
    """Resident memory of a process, in KiB."""
    return int(subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout)


async def soak(minutes: float, services: int, seed: int) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="isvc-soak-")))
        (folder / "cluster").mkdir()
        cluster = servers.start("kube-apiserver", folder / "cluster")
        stack.callback(cluster.stop)
        client = await stack.enter_async_context(Client.connect(kubeconfig.load(cluster.kubeconfig)))
        proxy = await stack.enter_async_context(FaultyProxy(cluster))
        balancer = await stack.enter_async_context(Balancer())
        installation = Installation(cluster, client, balancer, folder)
        await installation.set_up()
        stack.push_async_callback(installation.stop)
        clock = folder / "clock"
        clock.write_text("+0h")
        replica = await installation.start(
            "manager",
            proxy.config.server,
            flags=(),  # a lone manager is not to end when it loses its lease: nobody would start it again
            environment={
                "LD_PRELOAD": LIBFAKETIME,
                "FAKETIME_TIMESTAMP_FILE": str(clock),
                "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_CACHE_DURATION": "1",
            },
        )
        await replica.ready()
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TROUBLED}})
        for number in range(services):
            await client.create(INFERENCE_SERVICES, service(f"s{number}", TROUBLED))
        run = Soak(installation, proxy, replica, clock, services, random.Random(seed))
        await run.quiet()
        end = time.monotonic() + minutes * 60
        while time.monotonic() < end:
            await run.trouble()
            await run.quiet()
            print(f"{sum(run.faults.values())} faults, {run.memory[-1] // 1024} MiB", flush=True)
        await run.compare_with_fresh()
        _report(run)


def _report(run: Soak) -> None:
    settled = run.memory[1:-1]  # the last quiet has twice the services
    print("faults:", ", ".join(f"{name} {count}" for name, count in sorted(run.faults.items())))
    print(f"resident memory, first to last quiet: {settled[0] // 1024} to {settled[-1] // 1024} MiB")
    if settled[-1] > settled[0] * MEMORY_GROWTH:
        sys.exit("memory grows")
    print("passed: no hot loop, no growth, and the end is as a fresh start's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--services", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    if not Path(LIBFAKETIME).exists():
        sys.exit("clock jumps need libfaketime: apt-get install faketime")
    asyncio.run(soak(chosen.minutes, chosen.services, chosen.seed))


if __name__ == "__main__":
    main()

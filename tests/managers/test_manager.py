"""A whole manager in this process: its order, its probes, its draining, and a small controller that converges."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client.utils import floatToGoString
from tests.manual_clock import ManualClock
from tests.ports import free_port
from tests.unit.toolkit.test_webhook import write_pair
from tests.waiting import until

from isvc.kube.errors import AlreadyExists
from isvc.kube.objects import Key
from isvc.kube.owners import controller_ref
from isvc.kube.resource import CONFIG_MAPS, SECRETS
from isvc.toolkit.address import Address
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client, kubeconfig
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.controller import Controller, OwnerOf, Result, Watch
from isvc.toolkit.election import Election
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.manager import Manager
from isvc.toolkit.reads import Read
from isvc.toolkit.webhook import WebhookServer
from isvc.wire.x509.issue import issue_authority


class Twins:
    """An example controller: each ConfigMap labelled `twin` gets a Secret of its name, with its data."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.cache = Cache(client)
        self.requests: list[str] = []
        self.crash: set[str] = set()
        watches = [Watch(CONFIG_MAPS), Watch(SECRETS, to=OwnerOf(CONFIG_MAPS))]
        reads = [Read(CONFIG_MAPS, namespace=namespace, labels="twin"), Read(SECRETS, namespace=namespace)]
        self.controller = Controller(
            "twins", self.reconcile, watches, workers=4, reads=reads, ignore_own_writes_for=CONFIG_MAPS
        )

    async def reconcile(self, key: Key) -> Result | None:
        owner = self.cache.get(CONFIG_MAPS, key.name, key.namespace)
        if owner is None:
            return None
        if key.name in self.crash:
            self.crash.discard(key.name)
            raise RuntimeError("crashed on purpose")
        live = self.cache.get(SECRETS, key.name, key.namespace)
        wanted = owner.get("data") or {}
        if live is None:
            manifest = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": [controller_ref(owner)]},
                "stringData": wanted,
            }
            try:
                self.cache.note(SECRETS, await self.client.create(SECRETS, manifest), owner=owner)
            except AlreadyExists:
                return Result(requeue_after=0.1)
        return None


@asynccontextmanager
async def running(manager: Manager) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(manager.run(handle_signals=False))
    try:
        yield task
    finally:
        manager.stop()
        async with asyncio.timeout(60):
            await task


@pytest.fixture
async def connect(cluster) -> AsyncIterator[Callable[[], Client]]:
    clients: list[Client] = []

    def connect() -> Client:
        clients.append(Client.connect(kubeconfig.load(cluster.kubeconfig)))
        return clients[-1]

    yield connect
    for each in clients:
        await each.close()


def twin(name: str, namespace: str) -> dict:
    metadata = {"name": name, "namespace": namespace, "labels": {"twin": ""}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


def secrets(client: Client, namespace: str) -> Callable[[], Awaitable[int]]:
    async def count() -> int:
        return len((await client.list(SECRETS, namespace)).items)

    return count


async def test_it_converges_restores_and_writes_nothing_after_a_restart(client, namespace, connect):
    count = secrets(client, namespace)
    async with running(
        Manager((first := connect()), (twins := Twins(first, namespace)).cache, controllers=[twins.controller])
    ):
        twins.crash = {"c3", "c7"}
        await asyncio.gather(*(client.create(CONFIG_MAPS, twin(f"c{number}", namespace)) for number in range(20)))

        async def all_there() -> bool:
            return await count() == 20

        await until(all_there)
        await client.delete(SECRETS, "c5", namespace)
        await until(all_there)

    second = connect()
    again = Twins(second, namespace)
    manager = Manager(second, again.cache, controllers=[again.controller])
    async with running(manager):
        await until(lambda: manager.ready)
        await until(lambda: not len(again.controller.queue) and not again.controller.queue.busy)
        text = manager.metrics.text().decode()
    assert 'controller_runtime_reconcile_total{controller="twins",result="success"} 20.0' in text
    assert 'method="POST"' not in text
    assert 'method="PUT"' not in text
    assert 'method="PATCH"' not in text


async def test_a_created_child_costs_one_request_and_one_reconcile(client, namespace, connect):
    own = connect()
    twins = Twins(own, namespace)
    manager = Manager(own, twins.cache, controllers=[twins.controller])
    async with running(manager):
        await until(lambda: manager.ready)
        await client.create(CONFIG_MAPS, twin("only", namespace))

        def metric(line: str) -> bool:
            return line in manager.metrics.text().decode()

        await until(lambda: metric('controller_runtime_reconcile_total{controller="twins",result="success"} 1.0'))
        await until(lambda: twins.cache.get(SECRETS, "only", namespace))
        await client.create(CONFIG_MAPS, twin("another", namespace))
        await until(lambda: twins.cache.get(SECRETS, "another", namespace))
        assert metric('controller_runtime_reconcile_total{controller="twins",result="success"} 2.0')
        host = own.config.server.partition("://")[2]
        assert metric(f'rest_client_requests_total{{code="201",host="{host}",method="POST"}} 2.0')


async def test_probes_and_metrics_follow_the_start(client, namespace, connect, tmp_path):
    own, port = connect(), free_port()
    write_pair(tmp_path, issue_authority("test", SystemClock().now()))
    webhooks = WebhookServer(0, tmp_path, {}, host="127.0.0.1")
    twins = Twins(own, namespace)
    election = Election(own, "twins", namespace)
    manager = Manager(
        own,
        twins.cache,
        controllers=[twins.controller],
        election=election,
        webhooks=webhooks,
        health_probes=Address("127.0.0.1", port),
        metrics_address=Address("127.0.0.1", port),
    )
    async with running(manager), aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def page(path: str) -> tuple[int, str]:
            try:
                async with session.get(path) as response:
                    return response.status, await response.text()
            except aiohttp.ClientError:
                return 0, ""

        async def is_ready() -> bool:
            return await page("/readyz") == (200, "ok")

        async def leads() -> bool:
            return 'leader_election_master_status{name="twins"} 1.0' in (await page("/metrics"))[1]

        await until(is_ready)
        assert await page("/healthz") == (200, "ok")
        await until(leads)
        status, text = await page("/metrics")
        assert status == 200
        for name in (
            "controller_runtime_reconcile_time_seconds_bucket",
            "controller_runtime_reconcile_errors_total",
            "controller_runtime_active_workers",
            "controller_runtime_max_concurrent_reconciles",
            "workqueue_depth",
            "workqueue_adds_total",
            "workqueue_queue_duration_seconds_count",
            "workqueue_work_duration_seconds_count",
            "workqueue_retries_total",
            "workqueue_unfinished_work_seconds",
            "workqueue_longest_running_processor_seconds",
            "rest_client_requests_total",
            "process_resident_memory_bytes",
        ):
            assert f"\n{name}" in text, name
        expiry = "isvc_webhook_certificate_expiration_timestamp_seconds"
        assert f"\n{expiry} {floatToGoString(webhooks.certificate_expires())}\n" in text


async def test_stopping_waits_for_reconciles_under_way(client, namespace, connect):
    own = connect()
    cache = Cache(own)
    started, finished, release = asyncio.Event(), [], asyncio.Event()

    async def slow(key: Key) -> None:
        started.set()
        await release.wait()
        finished.append(key)

    manager = Manager(
        own,
        cache,
        controllers=[Controller("slow", slow, [Watch(CONFIG_MAPS)], reads=[Read(CONFIG_MAPS, namespace=namespace)])],
    )
    await client.create(CONFIG_MAPS, twin("one", namespace))
    async with running(manager) as task:
        async with asyncio.timeout(60):
            await started.wait()
        manager.stop()
        await asyncio.sleep(0.05)
        assert not task.done()
        release.set()
    assert finished == [Key(namespace, "one")]


async def test_webhooks_answer_until_nobody_asks_any_more(client, namespace, connect):
    own, clock = connect(), ManualClock()
    election = Election(own, "drained", namespace)
    stopped = []

    class Answers:
        async def start(self) -> None: ...

        async def stop(self) -> None:
            stopped.append(election.holds())

    manager = Manager(own, Cache(own), services=[Answers()], election=election, shutdown_delay=10, clock=clock)

    async def is_ready() -> bool:
        return manager.ready and election.holds()

    async def waits() -> bool:
        return clock.sleepers > 0

    async with running(manager) as task:
        await until(is_ready)
        manager.stop()
        await until(waits)
        assert (manager.ready, stopped, task.done()) == (False, [], False)
        clock.advance(10)
    assert stopped == [False], "the lease went first, so that somebody else goes on"


async def test_a_port_that_is_taken_is_one_clear_line(client, namespace, connect):
    own = connect()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        manager = Manager(own, Cache(own), health_probes=Address("127.0.0.1", port))
        with pytest.raises(ClusterError, match=f"cannot listen on port {port}"):
            await manager.run(handle_signals=False)

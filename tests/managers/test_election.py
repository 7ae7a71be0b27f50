"""Two replicas never both act: not when one leaves, not when one is killed, not when one is paused and wakes again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.manual_clock import ManualClock
from tests.waiting import until

from isvc.kube.resource import CONFIG_MAPS, LEASES
from isvc.toolkit.election import Election
from isvc.toolkit.failure import NotLeader

PROGRAM = Path(__file__).with_name("leader_program.py")
ROOT = Path(__file__).parents[2]


class Replicas:
    def __init__(self, cluster, client, namespace: str) -> None:
        self._client, self._namespace = client, namespace
        self._arguments = (str(cluster.kubeconfig), namespace)
        self._running: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, name: str) -> None:
        self._running[name] = await asyncio.create_subprocess_exec(
            sys.executable,
            str(PROGRAM),
            *self._arguments,
            name,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=asyncio.subprocess.PIPE,
        )

    def signal(self, name: str, number: signal.Signals) -> None:
        self._running[name].send_signal(number)

    async def has_written(self, name: str) -> None:
        process = self._running[name]

        async def written() -> bool:
            if process.returncode is not None:
                raise AssertionError(f"{name} ended: {(await process.communicate())[1].decode()}")
            return name in await writes(self._client, self._namespace)

        await until(written, f"{name} acts", within=120, every=0.2)

    async def end(self, name: str) -> tuple[int, str]:
        process = self._running.pop(name)
        async with asyncio.timeout(60):
            _, errors = await process.communicate()
        assert process.returncode is not None
        return process.returncode, errors.decode()

    async def kill(self) -> None:
        for process in self._running.values():
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


@pytest.fixture
async def replicas(cluster, client, namespace) -> AsyncIterator[Replicas]:
    started = Replicas(cluster, client, namespace)
    yield started
    await started.kill()


async def writes(client, namespace: str) -> list[str]:
    """Who wrote, in the order of the server."""
    listed = await client.list(CONFIG_MAPS, namespace, labels="writer")
    ordered = sorted(listed.items, key=lambda each: int(each["metadata"]["resourceVersion"]))
    return [each["metadata"]["labels"]["writer"] for each in ordered]


async def test_a_paused_leader_does_not_act_when_it_wakes(client, namespace, replicas):
    await replicas.start("first")
    await replicas.has_written("first")
    await replicas.start("second")
    replicas.signal("first", signal.SIGSTOP)
    await replicas.has_written("second")
    replicas.signal("first", signal.SIGCONT)
    status, errors = await replicas.end("first")
    assert status == 1
    lines = [json.loads(line) for line in errors.splitlines()]
    assert all({"level", "ts", "logger", "msg"} <= line.keys() for line in lines)
    assert [(line["level"], line["msg"]) for line in lines[-2:]] == [
        ("error", f"reconciles no more: the lease {namespace}/leader was lost"),
        ("error", f"leader_program ends: the lease {namespace}/leader was lost"),
    ]
    order = await writes(client, namespace)
    takeover = order.index("second")
    assert set(order[:takeover]) == {"first"}
    assert set(order[takeover:]) == {"second"}, "the first wrote after the second had taken over"


async def test_a_leader_that_leaves_in_good_order_hands_over_at_once(client, namespace, replicas):
    await replicas.start("first")
    await replicas.has_written("first")
    replicas.signal("first", signal.SIGTERM)
    status, _ = await replicas.end("first")
    assert status == 0
    lease = await client.get(LEASES, "leader", namespace)
    assert lease["spec"]["holderIdentity"] == ""
    await replicas.start("second")
    await replicas.has_written("second")
    lease = await client.get(LEASES, "leader", namespace)
    assert lease["spec"]["holderIdentity"] == "second"
    assert lease["spec"]["leaseTransitions"] == 1


async def test_a_killed_leader_is_replaced(replicas):
    await replicas.start("first")
    await replicas.has_written("first")
    await replicas.start("second")
    replicas.signal("first", signal.SIGKILL)
    await replicas.has_written("second")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def test_a_lease_is_ours_for_the_renew_deadline_only(client, namespace, clock):
    election = Election(client, "leader", namespace, identity="me", clock=clock)
    assert not election.holds()
    await election.acquire()
    clock.advance(9.9)
    election.check()
    clock.advance(0.2)
    with pytest.raises(NotLeader, match=f"not the leader: the lease {namespace}/leader"):
        election.check()


async def test_others_wait_for_the_whole_lease_by_their_own_clock(client, namespace, clock):
    holder = Election(client, "leader", namespace, identity="holder", clock=clock)
    await holder.acquire()
    other = Election(client, "leader", namespace, identity="other", clock=clock)
    assert not await other._attempt(10)
    clock.advance(14.9)
    assert not await other._attempt(10)
    clock.advance(0.2)
    assert await other._attempt(10)
    assert other.holds()
    assert not await holder._attempt(10)
    assert not holder.holds()


async def test_who_took_the_lease_is_said(client, namespace, clock):
    election = Election(client, "leader", namespace, identity="me", clock=clock)
    await election.acquire()
    holding = asyncio.create_task(election.hold())
    await client.patch(LEASES, "leader", {"spec": {"holderIdentity": "thief"}}, namespace)

    async def lost() -> bool:
        if clock.sleepers:
            clock.advance(2)
        return holding.done()

    await until(lost, "the lease is lost")
    with pytest.raises(NotLeader, match=f"the lease {namespace}/leader was lost to thief"):
        await holding


async def test_a_lease_that_client_go_wrote_is_respected_and_kept_in_form(client, namespace, clock):
    spec = {
        "holderIdentity": "pod_1234",
        "leaseDurationSeconds": 15,
        "acquireTime": "2026-01-01T00:00:00.000000Z",
        "renewTime": "2026-01-01T00:00:00.000000Z",
        "leaseTransitions": 3,
    }
    metadata = {"name": "leader", "namespace": namespace}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
    await client.create(LEASES, lease)
    election = Election(client, "leader", namespace, identity="me", clock=clock)
    assert not await election._attempt(10), "by our clock it was renewed just now"
    clock.advance(16)
    assert await election._attempt(10)
    taken = (await client.get(LEASES, "leader", namespace))["spec"]
    assert (taken["holderIdentity"], taken["leaseTransitions"]) == ("me", 4)
    assert set(taken) == set(spec)

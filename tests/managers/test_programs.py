"""The managers as programs build them: side by side in one process, listening where they were asked to."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import aiohttp
import pytest
from tests import definitions
from tests.definitions import PATIENCE
from tests.ports import free_port
from tests.waiting import until

from isvc.api.kinds.crds import crds
from isvc.kube.resource import SECRETS
from isvc.programs import isvc_manager, llmisvc_manager, program
from isvc.programs.options import Options
from isvc.toolkit.address import Address
from isvc.toolkit.failure import ClusterError


@pytest.fixture
async def kinds(client) -> None:
    await definitions.install(client, *crds(described=False))


def options(namespace: str, **changes) -> Options:
    return Options(
        metrics=Address("127.0.0.1", free_port()),
        health_probes=Address("127.0.0.1", free_port()),
        webhooks=Address("127.0.0.1", free_port()),
        system_namespace=namespace,
        leader_elect=True,
        **changes,
    )


async def answers(session: aiohttp.ClientSession, host: str, port: int, path: str) -> int:
    try:
        async with session.get(f"http://{host}:{port}{path}") as response:
            return response.status
    except aiohttp.ClientConnectionError:
        return 0


async def is_ready(session: aiohttp.ClientSession, port: int) -> bool:
    return await answers(session, "127.0.0.1", port, "/readyz") == 200


async def test_both_managers_run_in_one_process(client, namespace, kinds):
    chosen = [options(namespace), options(namespace)]
    managers = [
        program.build(module.PROGRAM, client.config, each)
        for module, each in zip((isvc_manager, llmisvc_manager), chosen, strict=True)
    ]
    running = asyncio.create_task(program.run(*managers))
    async with aiohttp.ClientSession() as session:
        for each in chosen:
            probes, metrics = each.health_probes, each.metrics
            assert probes is not None
            assert metrics is not None
            await until(partial(is_ready, session, probes.port), within=PATIENCE)
            assert await answers(session, "127.0.0.1", metrics.port, "/metrics") == 200
            assert await answers(session, "127.0.0.2", metrics.port, "/metrics") == 0, "it listens beyond its host"
            assert await answers(session, "127.0.0.2", probes.port, "/healthz") == 0, "it listens beyond its host"
    for secret in (isvc_manager.PROGRAM.certificate, llmisvc_manager.PROGRAM.certificate):
        assert (await client.get(SECRETS, secret, namespace))["data"]
    managers[0].stop()
    await asyncio.wait_for(running, 30)


async def test_a_manager_that_cannot_run_ends_the_other(client, namespace, kinds, tmp_path: Path):
    managers = [
        program.build(isvc_manager.PROGRAM, client.config, options(namespace)),
        program.build(llmisvc_manager.PROGRAM, client.config, options(namespace, webhook_cert_dir=tmp_path)),
    ]
    with pytest.raises(ClusterError, match="no valid certificate"):
        await asyncio.wait_for(program.run(*managers), 60)

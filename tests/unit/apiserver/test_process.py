"""The server as a process: how it starts, how it dies, what survives."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.unit.apiserver.conftest import CONFIG_MAPS

GONE, DOUBTFUL = "gone", "doubtful"
PROGRAM = Path(sys.executable).with_name("isvc")


class Process:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"

    async def start(self, *arguments: str) -> None:
        self.kubeconfig.unlink(missing_ok=True)
        options = ["--kubeconfig", str(self.kubeconfig), "--dir", str(self.folder / "state"), *arguments]
        self.process = await asyncio.create_subprocess_exec(str(PROGRAM), "apiserver", *options)
        async with asyncio.timeout(60):
            while not self.kubeconfig.exists():
                assert self.process.returncode is None
                await asyncio.sleep(0.02)
        config = json.loads(self.kubeconfig.read_text())
        self.url = config["clusters"][0]["cluster"]["server"]
        self.session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=False),
            headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        )

    async def end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)
        code = await self.process.wait()
        await self.session.close()
        return code

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        async with self.session.request(method, self.url + path, json=body) as answer:
            return answer.status, await answer.json()


@pytest.fixture
async def process(tmp_path):
    process = Process(tmp_path)
    yield process
    if process.process.returncode is None:
        await process.end(signal.SIGKILL)


async def test_the_kubeconfig_appears_when_the_server_is_ready_and_is_private(process):
    await process.start("--ephemeral")
    assert process.kubeconfig.stat().st_mode & 0o777 == 0o600
    assert process.url.startswith("https://127.0.0.1:")
    code, body = await process.ask("GET", "/version")
    assert (code, body["gitVersion"]) == (200, "v1.35.4")
    assert await process.end(signal.SIGTERM) == 0
    assert not (process.folder / "state" / "objects.db").exists()


async def test_what_was_acknowledged_survives_kill_9(process):
    await process.start()
    acknowledged: dict[str, str] = {}

    async def write(worker: int) -> None:
        for n in range(10_000):
            name = f"o-{worker}-{n}"
            code, made = await process.ask("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"n": str(n)}})
            assert code == 201
            acknowledged[name] = made["metadata"]["resourceVersion"]
            if n % 3 == 0:
                acknowledged[name] = DOUBTFUL  # until the answer comes, it may be there or not
                code, _ = await process.ask("DELETE", f"{CONFIG_MAPS}/{name}")
                assert code == 200
                acknowledged[name] = GONE

    for _ in range(2):
        writers = [asyncio.create_task(write(worker + len(acknowledged))) for worker in range(4)]
        before = len(acknowledged)
        async with asyncio.timeout(60):
            while len(acknowledged) < before + 60:
                await asyncio.sleep(0.01)
        process.process.send_signal(signal.SIGKILL)
        await asyncio.gather(*writers, return_exceptions=True)
        await process.end(signal.SIGKILL) if process.process.returncode is None else await process.session.close()
        await process.start()
        _, listed = await process.ask("GET", CONFIG_MAPS)
        found = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]}
        kept = {name: version for name, version in acknowledged.items() if version not in (DOUBTFUL, GONE)}
        assert {name: found.get(name) for name in kept} == kept
        assert int(listed["metadata"]["resourceVersion"]) >= max(int(version) for version in kept.values())
        unacknowledged = {name for name in found if name not in acknowledged}
        assert len(unacknowledged) <= 4  # at most what each writer had under way
        assert not {name for name, version in acknowledged.items() if version == GONE and name in found}
        doubtful = {name for name, version in acknowledged.items() if version == DOUBTFUL}
        acknowledged |= {name: found.get(name, GONE) for name in unacknowledged | doubtful}


async def test_the_same_certificates_and_token_after_a_restart(process):
    await process.start()
    first = json.loads(process.kubeconfig.read_text())
    await process.end(signal.SIGTERM)
    await process.start()
    second = json.loads(process.kubeconfig.read_text())
    assert first["users"] == second["users"]
    certificate = [each["clusters"][0]["cluster"]["certificate-authority-data"] for each in (first, second)]
    assert certificate[0] == certificate[1]
    assert os.stat(process.folder / "state" / "objects.db").st_mode & 0o077 == 0


async def test_a_folder_and_a_port_have_one_server_at_a_time(process, start):
    await process.start()
    options = ["--kubeconfig", str(process.folder / "other"), "--dir", str(process.folder / "state")]
    for more, problem in (
        (options, "another API server is running on"),
        ([*options[:3], str(process.folder / "free"), "--port", process.url.rsplit(":", 1)[1]], "in use"),
    ):
        second = await asyncio.create_subprocess_exec(
            str(PROGRAM), "apiserver", *more, stderr=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        _, error = await asyncio.wait_for(second.communicate(), 60)
        assert second.returncode == 1
        assert problem in error.decode()
        assert "Traceback" not in error.decode()
    assert not (process.folder / "other").exists()


async def test_another_name_gets_another_certificate_of_the_same_authority(start):
    first = await start(ephemeral=True)
    before = {name: (first.identity.folder / name).read_bytes() for name in ("ca.crt", "apiserver.crt", "admin.token")}
    await first.stop()
    second = await start(ephemeral=True, host="localhost")
    after = {name: (second.identity.folder / name).read_bytes() for name in before}
    await second.stop()
    assert after == before
    endpoints = second.store.get("endpoints", "default", "kubernetes").parse()
    assert endpoints["subsets"][0]["addresses"] == [{"ip": "127.0.0.1"}]
    third = await start(ephemeral=True, host="127.0.0.2")
    context = ssl.create_default_context(cafile=third.identity.ca)
    headers = {"Authorization": f"Bearer {third.identity.admin_token}"}
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(f"{third.url}/version", headers=headers) as answer,
    ):
        assert answer.status == 200
    assert third.identity.ca.read_bytes() == before["ca.crt"]
    await third.stop()

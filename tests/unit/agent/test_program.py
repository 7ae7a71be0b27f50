"""The agent as a process: its end, sinks that fail, and models that come and go."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.ports import free_port
from tests.unit.agent.play import agent
from tests.waiting import until
from tests.web_servers import on_any_path, serving

PROGRAM = [sys.executable, "-m", "isvc.agent", "--host=127.0.0.1"]


async def _post(port: int, path: str = "/v1/models/m:predict") -> int:
    async with aiohttp.ClientSession() as session, session.post(f"http://127.0.0.1:{port}{path}", data=b"{}") as answer:
        await answer.read()
        return answer.status


async def _ok(request: web.Request) -> web.Response:
    return web.json_response({})


async def test_events_that_wait_are_delivered_before_the_end() -> None:
    seen: list[str] = []
    held = asyncio.Event()

    async def slow_sink(request: web.Request) -> web.Response:
        await held.wait()
        seen.append(request.headers["Ce-Type"])
        return web.Response()

    async with serving(on_any_path(_ok)) as component, serving(on_any_path(slow_sink)) as sink:
        port = free_port()
        flags = [f"--port={port}", f"--component-port={component}", f"--log-url=http://127.0.0.1:{sink}", "--workers=1"]
        async with agent([*PROGRAM, *flags, "--drain-seconds=0"], component, port) as process:
            assert [await _post(port) for _ in range(3)] == [200, 200, 200]
            process.send_signal(signal.SIGTERM)
            held.set()
            assert await process.wait() == 0
    assert len(seen) == 6


async def test_a_sink_that_hangs_or_is_not_there_costs_no_prediction() -> None:
    async def hanging(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with serving(on_any_path(_ok)) as component, serving(on_any_path(hanging)) as sink:
        for url in (f"http://127.0.0.1:{sink}", "http://127.0.0.1:1"):
            port = free_port()
            flags = [f"--port={port}", f"--component-port={component}", f"--log-url={url}", "--workers=1"]
            async with agent([*PROGRAM, *flags], component, port):
                assert set(await asyncio.gather(*(_post(port) for _ in range(600)))) == {200}


async def test_a_model_server_that_is_gone_is_a_502() -> None:
    for flags in ([], ["--enable-batcher", "--max-batchsize=1"]):
        port = free_port()
        async with (
            agent([*PROGRAM, f"--port={port}", "--component-port=1", *flags], 1, port),
            aiohttp.ClientSession() as session,
            session.post(f"http://127.0.0.1:{port}/v1/models/m:predict", json={"instances": [1]}) as answer,
        ):
            assert answer.status == 502


async def test_models_are_pulled_replaced_and_removed(tmp_path: Path) -> None:
    calls: list[str] = []
    refused = {"b"}

    async def repository(request: web.Request) -> web.Response:
        name, verb = request.path.split("/")[-2:]
        calls.append(f"{verb} {name}")
        return web.Response(status=500 if name in refused else 200)

    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "model.txt").write_text(version)
    config, models = tmp_path / "config", tmp_path / "models"
    config.mkdir()
    models.mkdir()

    def want(**uris: str) -> None:
        entries = [{"modelName": n, "modelSpec": {"storageUri": u, "framework": "x"}} for n, u in uris.items()]
        (config / "models.json.new").write_text(json.dumps(entries))
        (config / "models.json.new").replace(config / "models.json")

    one, two = (f"file://{tmp_path / version}" for version in ("one", "two"))
    async with serving(on_any_path(repository)) as component:
        port = free_port()
        folders = [f"--config-dir={config}", f"--model-dir={models}", "--enable-puller"]
        command = [*PROGRAM, f"--port={port}", f"--component-port={component}", *folders]
        async with agent(command, component, port):
            want(a=one, b=one)
            await until(lambda: {"load a", "load b"} <= set(calls))
            assert (models / "a" / "model.txt").read_text() == "one"
            refused.clear()
            await until(lambda: calls.count("load b") >= 2)  # it is tried again
            (config / "models.json").write_text("no json")
            want(a=two, b=one)
            await until(lambda: calls.count("load a") == 2)
            assert (models / "a" / "model.txt").read_text() == "two"
            want(b=one)
            await until(lambda: not (models / "a").exists())
        assert calls.count("unload a") == 2
        assert "unload b" not in calls


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-batchsize=0"], "positive"),
        (["--log-mode=some"], "--log-mode"),
        (["--log-url=s3://bucket"], "http"),
        (["--metadata-annotations=x"], "key=value"),
    ],
)
def test_bad_flags_are_refused(flags: list[str], said: str) -> None:
    done: Any = subprocess.run([*PROGRAM, *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr

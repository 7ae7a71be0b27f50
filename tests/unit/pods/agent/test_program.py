"""The agent as a process: its end, sinks that fail, and models that come and go."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.ports import free_port
from tests.unit.pods.agent.play import agent
from tests.waiting import until
from tests.web_servers import on_any_path, serving

from isvc.pods.agent.cloudevents import REQUEST, Event, Origin
from isvc.pods.agent.http_sink import http_sink
from isvc.pods.agent.logger import Ledger
from isvc.pods.agent.model_server import ModelServer
from isvc.pods.agent.puller import Puller, PullError, download

PROGRAM = [sys.executable, "-m", "isvc.pods.agent", "--host=127.0.0.1"]


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
                for _ in range(6):  # more at once than a server's backlog would be another test
                    assert set(await asyncio.gather(*(_post(port) for _ in range(100)))) == {200}


async def test_a_model_server_that_is_gone_is_a_502() -> None:
    for flags in ([], ["--enable-batcher", "--max-batchsize=1"]):
        port = free_port()
        async with (
            agent([*PROGRAM, f"--port={port}", "--component-port=1", *flags], 1, port),
            aiohttp.ClientSession() as session,
            session.post(f"http://127.0.0.1:{port}/v1/models/m:predict", json={"instances": [1]}) as answer,
        ):
            assert answer.status == 502


async def test_what_is_nested_deeply_is_passed_on_as_it_is() -> None:
    nested = b"[" * 300 + b"]" * 300

    async def same(request: web.Request) -> web.Response:
        return web.Response(body=(await request.read()).replace(b"instances", b"predictions"))

    async with serving(on_any_path(same)) as component:
        port = free_port()
        flags = [f"--port={port}", f"--component-port={component}", "--enable-batcher", "--max-batchsize=1"]
        async with agent([*PROGRAM, *flags], component, port), aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{port}/v1/models/m:predict"
            async with session.post(url, data=b'{"instances":[%s]}' % nested) as answer:
                assert answer.status == 200
                assert b'"predictions":[%s]' % nested in await answer.read()
            too_deep = b"[" * 100_000 + b"]" * 100_000
            async with session.post(url, data=b'{"instances":[%s]}' % too_deep) as answer:
                assert answer.status == 400


async def test_compressed_bodies_odd_headers_and_absolute_targets_are_passed_on_and_logged() -> None:
    received: list[tuple[str, bytes]] = []
    events: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def component_server(request: web.Request) -> web.Response:
        received.append((request.raw_path, await request.read()))
        return web.Response()

    async def sink(request: web.Request) -> web.Response:
        events.put_nowait((request.headers["Ce-Id"], request.headers["Ce-Metadata"]))
        return web.Response()

    async with serving(on_any_path(component_server)) as component, serving(on_any_path(sink)) as logs:
        port = free_port()
        flags = [f"--port={port}", f"--component-port={component}", "--metadata-headers=X-From", "--log-mode=request"]
        async with agent([*PROGRAM, *flags, f"--log-url=http://127.0.0.1:{logs}", "--workers=1"], component, port):
            body = gzip.compress(b"{}")
            head = b"POST http://other/v2/a%%2Fb?c=1 HTTP/1.1\r\nHost: other\r\nContent-Length: %d\r\n" % len(body)
            odd = b"Content-Encoding: gzip\r\nCe-Id: a\xff\r\nX-From: b\xff\r\n\r\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head + odd + body)
            assert b" 200 " in await asyncio.wait_for(reader.readline(), 60)
            writer.close()
            assert await asyncio.wait_for(events.get(), 60) == ("a%FF", '{"X-From":["b%EF%BF%BD"]}')
    assert received == [("http://other/v2/a%2Fb?c=1", b"{}")]  # decompressed by the model server


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


async def test_no_model_waits_for_one_that_does_not_load(tmp_path: Path) -> None:
    loaded, patience = list[str](), asyncio.Event()

    async def repository(request: web.Request) -> web.Response:
        name, verb = request.path.split("/")[-2:]
        if name == "slow":
            await patience.wait()
        loaded.append(f"{verb} {name}")
        return web.Response()

    def want(*names: str) -> None:
        entries = [{"modelName": name, "modelSpec": {"storageUri": source.as_uri()}} for name in names]
        (tmp_path / "models.json").write_text(json.dumps(entries))

    source = tmp_path / "model.txt"
    source.write_text("x")
    async with serving(on_any_path(repository)) as port:
        puller = asyncio.create_task(Puller(tmp_path, tmp_path / "models", ModelServer(port)).run())
        want("slow", "a")
        await until(lambda: loaded == ["load a"])
        want("slow", "b")
        await until(lambda: {"unload a", "load b"} <= {*loaded})
        want("b")
        patience.set()
        await until(lambda: loaded[-2:] == ["load slow", "unload slow"])
        puller.cancel()


async def test_the_log_tells_no_secrets_of_addresses_and_no_megabytes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A model's address, a sink's, and a model server's answer."""

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=404, text="x" * (1 << 20))

    with pytest.raises(PullError) as problem:
        await download({"storageUri": "ftp://me:Tr0ub4dor@host/model?sig=Tr0ub4dor"}, tmp_path / "model")
    wanted = {"modelName": "m", "modelSpec": {"storageUri": tmp_path.as_uri()}}
    (tmp_path / "models.json").write_text(json.dumps([wanted]))
    async with serving(on_any_path(refuse)) as port:
        address, ledger = f"http://me:Tr0ub4dor@127.0.0.1:{port}/?key=Tr0ub4dor", Ledger()
        async with http_sink(address, Origin("pod"), ledger, 1, None) as sink:
            sink.put(Event(REQUEST, "id-\udcff" + "y" * 5000, datetime.now(UTC), "", b"", {}))
            await until(lambda: ledger.failed == 1)
        puller = asyncio.create_task(Puller(tmp_path, tmp_path / "models", ModelServer(port)).run())
        await until(lambda: "does not load" in caplog.text)
        puller.cancel()
    assert f"http://127.0.0.1:{port}/: it answered 404" in caplog.text
    assert "Tr0ub4dor" not in caplog.text + str(problem.value)
    assert max(map(len, caplog.messages)) < 2000


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--max-batchsize=0"], "positive"),
        (["--log-mode=some"], "--log-mode"),
        (["--log-url=ftp://bucket"], "s3://"),
        (["--metadata-annotations=x"], "key=value"),
    ],
)
def test_bad_flags_are_refused(flags: list[str], said: str) -> None:
    done: Any = subprocess.run([*PROGRAM, *flags], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def _lines_of(folder: Path) -> list[int]:
    return sorted(len(path.read_text().splitlines()) for path in folder.glob("*.csv"))


async def _counts(port: int, line: str) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return line in await answer.text()


async def test_logs_in_a_folder_are_complete_at_the_end_and_counted(tmp_path: Path) -> None:
    async with serving(on_any_path(_ok)) as component:
        port, metrics = free_port(), free_port()
        flags = [f"--port={port}", f"--component-port={component}", f"--metrics-port={metrics}", "--drain-seconds=0"]
        store = [f"--log-url=file://{tmp_path}", "--log-store-path=day", "--log-batch-size=2", "--log-store-format=csv"]
        async with agent([*PROGRAM, *flags, *store, "--namespace=ns"], component, port) as process:
            assert [await _post(port) for _ in range(3)] == [200, 200, 200]
            await until(lambda: _lines_of(tmp_path / "ns" / "day") == [3, 3])
            await until(lambda: _counts(metrics, 'isvc_agent_events_total{outcome="delivered"} 4\n'))
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    assert _lines_of(tmp_path / "ns" / "day") == [2, 2, 3, 3]

"""Plays the corpus against an agent: what it answers, what the model server is asked, what the sink gets.

    python -m tests.unit.pods.agent.play --record COMMAND…

writes down the answers of an agent, KServe's own for instance, for the tests to compare with.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from tests.ports import free_port
from tests.waiting import until
from tests.web_servers import on_any_path, serving

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


def corpus() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = yaml.safe_load((HERE / "corpus.yaml").read_text())
    return cases


async def play(case: dict[str, Any], command: Sequence[str]) -> dict[str, Any]:
    asked: list[str] = []
    logged: list[dict[str, Any]] = []
    async with serving(on_any_path(_model_server(asked))) as component, serving(on_any_path(_sink(logged))) as sink:
        port = free_port()
        flags = [flag.replace("{sink}", f"http://127.0.0.1:{sink}/") for flag in case["flags"]]
        async with agent([*command, f"--port={port}", f"--component-port={component}", *flags], component, port):
            answers = await asyncio.gather(*(_answer(request, port) for request in case["requests"]))
            await until(lambda: len(logged) >= logged_events(case))
    logged.sort(key=lambda event: str(event["headers"].get("ce-type")))
    own = {str(port): "{port}", str(component): "{component}"}
    document: dict[str, Any] = {"answers": answers, "asked": sorted(asked), "events": logged}
    text = json.dumps(document)
    for number, name in own.items():
        text = text.replace(number, name)
    found: dict[str, Any] = json.loads(text)
    return found


@asynccontextmanager
async def agent(command: Sequence[str], component: int, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    env = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    env["SERVING_READINESS_PROBE"] = json.dumps({"tcpSocket": {"port": component, "host": "127.0.0.1"}})
    process = await asyncio.create_subprocess_exec(*command, env=env)
    try:
        await until(lambda: _listens(port))
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _answer(request: dict[str, Any], port: int) -> dict[str, Any]:
    async with (
        aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session,
        session.request(
            request.get("method", "POST"),
            f"http://127.0.0.1:{port}{request['path']}",
            data=request.get("body", "").encode(),
            headers=request.get("headers", {}),
        ) as response,
    ):
        return {"status": response.status, "body": _comparable(await response.text())}


def _comparable(body: str) -> Any:
    try:
        return json.loads(_UUID.sub("{uuid}", body))
    except ValueError:
        return body


def _sink(logged: list[dict[str, Any]]) -> Any:
    async def serve(request: web.Request) -> web.Response:
        headers = {
            name.lower(): _TIME.sub("{time}", _UUID.sub("{uuid}", value))
            for name, value in request.headers.items()
            if name.lower().startswith("ce-") or name.lower() == "content-type"
        }
        logged.append({"headers": headers, "body": _comparable((await request.read()).decode())})
        return web.Response()

    return serve


def _model_server(asked: list[str]) -> Any:
    async def serve(request: web.Request) -> web.Response:
        body = (await request.read()).decode()
        asked.append(f"{request.method} {request.raw_path} {body}")
        if request.path.startswith("/fail/"):
            status = int(request.path.removeprefix("/fail/").partition(":")[0])
            return web.json_response({"error": "failed"}, status=status)
        if request.path.startswith("/few"):
            return web.json_response({"predictions": [1]})
        try:
            instances = json.loads(body)["instances"]
        except (ValueError, KeyError, TypeError):
            return web.Response(text=f"not a prediction: {body}")
        return web.json_response({"predictions": instances})

    return serve


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def logged_events(case: dict[str, Any]) -> int:
    """How many events a case has: one for a request, one for its answer if that is a success."""
    if not any(flag.startswith("--log-url") for flag in case["flags"]):
        return 0
    one_each = any(flag in case["flags"] for flag in ("--log-mode=request", "--log-mode=response"))
    fails = any("/fail" in request["path"] for request in case["requests"])
    return len(case["requests"]) * (1 if one_each or fails else 2)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--record", nargs="+", required=True)
    command = arguments.parse_args().record
    cases = [case for case in corpus() if "differs" not in case]
    answers = {case["name"]: asyncio.run(play(case, command)) for case in cases}
    RECORDED.write_text(json.dumps(answers, indent=1) + "\n")

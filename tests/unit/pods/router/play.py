"""Plays the corpus of graphs against a router and says what it answered, and what its services were asked.

    python -m tests.unit.pods.router.play --record COMMAND…

writes down the answers of a router, KServe's own for instance, for the tests to compare with.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from aiohttp import web
from tests.web_servers import on_any_path, serving

HERE = Path(__file__).parent
RECORDED = HERE / "recorded.json"

# What every client and server writes in its own way.
_UNCOMPARED = {"host", "user-agent", "accept", "accept-encoding", "content-length", "connection"}


def corpus() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = yaml.safe_load((HERE / "corpus.yaml").read_text())
    return cases


# Runs a router for a graph and a value of PROPAGATE_HEADERS, and gives its port.
Run = Callable[[str, str | None], AbstractAsyncContextManager[int]]


async def play(case: dict[str, Any], router: Run) -> list[dict[str, Any]]:
    async with _services() as (url, asked):
        spec = {"nodes": case["nodes"], "routerTimeouts": case.get("timeouts", {})}
        graph = json.dumps(spec).replace("{services}", url)
        async with router(graph, case.get("propagate")) as port:
            return [await _answer(request, port, url, asked) for request in case["requests"]]


def as_process(command: Sequence[str], port: int) -> Run:
    @asynccontextmanager
    async def start(graph: str, propagate: str | None) -> AsyncIterator[int]:
        env = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        env |= {} if propagate is None else {"PROPAGATE_HEADERS": propagate}
        quiet = asyncio.subprocess.DEVNULL
        router = await asyncio.create_subprocess_exec(
            *command, "--graph-json", graph, env=env, stdout=quiet, stderr=quiet
        )
        try:
            await _listening(port, router)
            yield port
        finally:
            router.kill()
            await router.wait()

    return start


async def _answer(request: dict[str, Any], port: int, services: str, asked: list[str]) -> dict[str, Any]:
    asked.clear()
    method, path = request.get("method", "POST"), request.get("path", "/")
    async with (
        aiohttp.ClientSession(skip_auto_headers=["Content-Type"]) as session,
        session.request(
            method,
            f"http://127.0.0.1:{port}{path}",
            data=request.get("body", "").encode(),
            headers=request.get("headers", {}),
        ) as response,
    ):
        body = (await response.text()).replace(services, "{services}")
        content_type = response.content_type if body else ""
        return {"status": response.status, "type": content_type, "body": _comparable(body), "asked": sorted(asked)}


def _comparable(body: str) -> Any:
    """JSON as its value; of errors, whose causes every language words in its own way, that they are one."""
    try:
        document = json.loads(body)
    except ValueError:
        return body
    if isinstance(document, dict) and set(document) == {"error", "cause"}:
        return {"error": document["error"]}
    return document


async def _listening(port: int, router: asyncio.subprocess.Process) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if router.returncode is not None:
                raise RuntimeError(f"the router ended with {router.returncode}") from None
            await asyncio.sleep(0.01)
        else:
            writer.close()
            return


@asynccontextmanager
async def _services() -> AsyncIterator[tuple[str, list[str]]]:
    """The services behind the graphs, and the paths that they were asked for since it was cleared."""
    asked: list[str] = []

    async def serve(request: web.Request) -> web.Response:
        asked.append(f"{request.method} {request.path}")
        what, _, detail = request.path.lstrip("/").partition("/")
        body = await request.read()
        match what:
            case "echo":
                return web.Response(body=body)
            case "predict":
                return web.json_response({"predictions": [detail], "of": body.decode()})
            case "fail":
                return web.json_response({"failed": detail}, status=int(detail))
            case "text":
                return web.Response(text="plain & <simple>")
            case "list":
                return web.json_response([1, 2])
            case "slow":
                await asyncio.sleep(float(detail))
                return web.json_response({})
            case "redirect":
                return web.Response(status=int(detail), headers={"Location": "/predict/redirected"})
            case "headers":
                names = {name.lower() for name in request.headers} - _UNCOMPARED
                return web.json_response({name: request.headers[name] for name in sorted(names)})
        return web.Response(status=404)

    async with serving(on_any_path(serve)) as port:
        yield f"http://127.0.0.1:{port}", asked


if __name__ == "__main__":
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--record", nargs="+", required=True)
    flags.add_argument("--port", type=int, default=8080, help="where the router listens")
    arguments = flags.parse_args()
    router = as_process(arguments.record, arguments.port)
    answers = {case["name"]: asyncio.run(play(case, router)) for case in corpus()}
    RECORDED.write_text(json.dumps(answers, indent=1) + "\n")

"""Requests of `isvc predict`: where they go, and what comes of answers, streams and refusals. The server is real."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from isvc.insight.operations import NotPossible
from isvc.insight.operations.endpoint import Endpoint, Unanswered, find_endpoint
from isvc.toolkit.client import Client
from isvc.toolkit.client.kubeconfig import ClusterConfig

NOBODY = ClusterConfig(server="http://127.0.0.1:9")


def service(kind: str = "InferenceService", **spec: Any) -> dict:
    status = {"url": "http://iris.example.com/base"}
    return {"kind": kind, "metadata": {"name": "iris", "namespace": "team"}, "spec": spec, "status": status}


@pytest.mark.parametrize(
    ("kind", "body", "path"),
    [
        ("InferenceService", {"instances": []}, "/v1/models/iris:predict"),
        ("InferenceService", {"inputs": []}, "/v2/models/iris/infer"),
        ("InferenceService", {"messages": []}, "/openai/v1/chat/completions"),
        ("LLMInferenceService", {"messages": []}, "/v1/chat/completions"),
        ("LLMInferenceService", {"prompt": ""}, "/v1/completions"),
        ("InferenceGraph", {"instances": []}, "/"),
    ],
)
def test_the_path_follows_from_kind_and_request(kind, body, path):
    assert find_endpoint(service(kind), body).url == f"http://iris.example.com/base{path}"


def test_the_name_of_the_model_is_filled_in_where_openai_wants_one():
    named = find_endpoint(service("LLMInferenceService", model={"name": "smol"}), {"messages": []})
    assert named.complete({"messages": []}) == {"messages": [], "model": "smol"}
    assert named.complete({"messages": [], "model": "mine"})["model"] == "mine"
    assert "model" not in find_endpoint(service(), {"instances": []}).complete({"instances": []})


def test_what_cannot_be_sent_is_said():
    with pytest.raises(NotPossible, match="shows no protocol"):
        find_endpoint(service(), {"nothing": 1})
    with pytest.raises(NotPossible, match="has no URL yet"):
        find_endpoint({**service(), "status": {}}, {"instances": []})


@pytest.fixture
async def url():
    async def answer(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if body.get("wrong"):
            return web.Response(status=400, text="the model\nsays no")
        if much := body.get("much"):
            return web.Response(body=bytes(much))
        if not body.get("stream"):
            return web.json_response({"host": request.headers["Host"]})
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for line in (
            '{"choices": [{"delta": {"content": "Par"}}]}',
            '{"choices": [{"text": "is"}]}',
            "rubbish",
            '{"error": {"message": "out of memory"}}' if body.get("broken") else "[DONE]",
        ):
            await response.write(f"data: {line}\n\n".encode())
        if body.get("silent"):
            await asyncio.sleep(600)
        return response

    app = web.Application()
    app.router.add_post("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield site._server.sockets[0].getsockname()[1]  # type: ignore[union-attr]
    await runner.cleanup()


async def test_answers_streams_and_refusals(url: int):
    async with Client.connect(NOBODY) as client:
        here = Endpoint(f"http://127.0.0.1:{url}/")
        assert await here.post(client, {}, 30) == f'{{"host": "127.0.0.1:{url}"}}'.encode()
        assert [piece async for piece in here.stream({"stream": True}, 30)] == ["Par", "is"]
        with pytest.raises(Unanswered, match="broke off: out of memory"):
            [piece async for piece in here.stream({"stream": True, "broken": True}, 30)]
        with pytest.raises(Unanswered, match="did not answer: timeout"):
            [piece async for piece in here.stream({"stream": True, "silent": True}, 0.2)]
        with pytest.raises(Unanswered, match="answered 400: the model says no") as refused:
            await here.post(client, {"wrong": True}, 30)
        assert refused.value.status == 400


async def test_names_below_localhost_are_this_machine(url: int):
    target = find_endpoint(
        {**service("InferenceGraph"), "status": {"url": f"http://iris.localhost:{url}"}}, {"instances": []}
    )
    async with Client.connect(NOBODY) as client:
        assert await target.post(client, {}, 30) == f'{{"host": "iris.localhost:{url}"}}'.encode()


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "http://nowhere:port"])
async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(url: int, monkeypatch, proxy):
    monkeypatch.setenv("http_proxy", proxy)
    async with Client.connect(NOBODY) as client:
        for host in ("127.0.0.1", "localhost", "iris.localhost"):
            assert await Endpoint(f"http://{host}:{url}/").post(client, {}, 30)
        with pytest.raises(Unanswered, match=r"^http://example.com/ cannot be "):
            await Endpoint("http://example.com/").post(client, {}, 30)


async def test_through_the_api_server_alone_and_no_more_than_asked_for(url: int):
    api_server = replace(NOBODY, server=f"http://127.0.0.1:{url}")
    hidden = Endpoint("http://127.0.0.1:9/", proxy="/", direct=False)
    async with Client.connect(api_server) as client:
        assert await hidden.post(client, {}, 30) == f'{{"host": "127.0.0.1:{url}"}}'.encode()
        assert await replace(hidden, direct=True).post(client, {}, 30)  # after the address did not answer
        with pytest.raises(Unanswered, match="answered with more than 1 MiB"):
            await hidden.post(client, {"much": 2 << 20}, 30, most=1 << 20)
        with pytest.raises(Unanswered, match="answered 400: the model says no"):
            await hidden.post(client, {"wrong": True}, 30)
        with pytest.raises(Unanswered, match="can be asked directly alone"):
            await replace(hidden, proxy="").post(client, {}, 30)


async def test_nobody_answers():
    async with Client.connect(NOBODY) as client:
        with pytest.raises(Unanswered, match="cannot be reached"):
            await Endpoint("http://127.0.0.1:9/").post(client, {}, 30)
        with pytest.raises(Unanswered, match="did not answer"):
            [piece async for piece in Endpoint("http://127.0.0.1:9/").stream({}, 30)]

from __future__ import annotations

import asyncio
import socket
from contextlib import aclosing

import orjson
import pytest
from aiohttp import web
from tests.waiting import until

from isvc.kube.errors import Forbidden, Gone, InternalError, NotFound, ServiceUnavailable, TooManyRequests, Unauthorized
from isvc.kube.resource import CONFIG_MAPS
from isvc.toolkit.client import Client, transport
from isvc.toolkit.client.kubeconfig import ClusterConfig, Impersonation
from isvc.toolkit.failure import Unreachable

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}


def ok(_: web.Request) -> web.Response:
    return web.json_response(OBJECT)


def refuse(status: int, **headers: str):
    body = {"kind": "Status", "status": "Failure", "code": status, "message": f"said {status}"}
    return lambda _: web.json_response(body, status=status, headers=headers)


def later(status: int, seconds: str):
    return refuse(status, **{"Retry-After": seconds})


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_server_is_asked_again_when_it_says_so(script, status):
    script.will(later(status, "0"), later(status, "0.01"), ok)
    async with Client.connect(script.config()) as client:
        assert await client.get(CONFIG_MAPS, "a", "ns") == OBJECT
    assert len(script.requests) == 3


async def test_a_server_that_does_not_say_when_is_not_asked_again(script):
    script.will(refuse(503))
    async with Client.connect(script.config()) as client:
        with pytest.raises(ServiceUnavailable, match="said 503"):
            await client.get(CONFIG_MAPS, "a")
    assert len(script.requests) == 1


async def test_waiting_ends_with_the_deadline_and_tells_how_long_it_would_have_been(script):
    script.will(later(429, "600"))
    async with Client.connect(script.config()) as client:
        with pytest.raises(TooManyRequests) as caught:
            await client.get(CONFIG_MAPS, "a")
    assert caught.value.retry_after == 600


async def test_patience_is_not_endless(script):
    script.will(later(429, "0"))
    async with Client.connect(script.config()) as client:
        with pytest.raises(TooManyRequests):
            await client.get(CONFIG_MAPS, "a")
    assert len(script.requests) == 11


async def test_every_call_has_a_deadline(script):
    async def never(_: web.Request) -> web.Response:
        await asyncio.sleep(600)
        raise AssertionError

    script.will(never)
    async with Client.connect(script.config()) as client:
        with pytest.raises(Unreachable, match="no answer to GET /slow before its deadline"):
            await client.request("GET", "/slow", within=0.05)


async def test_waiting_for_other_writes_is_not_the_servers_fault(script):
    async def hang_some(request: web.Request) -> web.Response:
        if request.path == "/hangs":
            await asyncio.sleep(600)
        return ok(request)

    script.will(hang_some)
    async with Client.connect(script.config()) as client:
        hanging = [client.request("POST", "/hangs", within=2.0) for _ in range(transport.WRITES_AT_ONCE)]
        *failed, answer = await asyncio.gather(
            *hanging, client.request("POST", "/answers", within=1.5), return_exceptions=True
        )
    assert all(isinstance(each, Unreachable) for each in failed)
    assert not isinstance(answer, Exception), "its time began when it was sent"


async def test_what_is_no_status_is_still_an_error_with_its_text(script):
    script.will(lambda _: web.Response(status=404, text="404 page not found\n"), refuse(500))
    async with Client.connect(script.config()) as client:
        with pytest.raises(NotFound, match="404 page not found"):
            await client.request("GET", "/nowhere")
        with pytest.raises(InternalError):
            await client.request("GET", "/broken")


@pytest.mark.parametrize("answer", [[], None, 3], ids=str)
async def test_a_refusal_that_is_no_status_is_a_sentence(script, answer):
    script.will(web.json_response(answer, status=403))
    async with Client.connect(script.config()) as client:
        with pytest.raises(Forbidden, match=f"{script.url} answered 403 and does not say why, as API servers do"):
            await client.get(CONFIG_MAPS, "a")


async def test_who_we_are(script):
    script.will(ok)
    who = Impersonation("jane", groups=("dev", "ops"), extra={"a/b": ("c",)})
    async with Client.connect(script.config(token="t0ken", impersonate=who)) as client:
        await client.get(CONFIG_MAPS, "a")
    headers = script.requests[0].headers
    assert headers["Authorization"] == "Bearer t0ken"
    assert headers["User-Agent"].startswith("isvc/")
    assert headers["Impersonate-User"] == "jane"
    assert headers.getall("Impersonate-Group") == ["dev", "ops"]
    assert headers["Impersonate-Extra-a%2Fb"] == "c"


async def test_writes_carry_the_field_manager(script):
    script.will(ok)
    async with Client.connect(script.config()) as client:
        await client.create(CONFIG_MAPS, OBJECT, "ns")
        await client.update(CONFIG_MAPS, OBJECT, field_manager="other", dry_run=True)
    assert [request.query.get("fieldManager") for request in script.requests] == ["isvc", "other"]
    assert script.requests[1].query["dryRun"] == "All"


async def test_an_unreachable_server_is_one_clear_line():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        async with Client.connect(ClusterConfig(server=f"http://127.0.0.1:{port}")) as client:
            with pytest.raises(Unreachable, match=f"cannot reach http://127.0.0.1:{port}: connection refused"):
                await client.get(CONFIG_MAPS, "a")


async def test_a_proxy_that_cannot_be_reached_is_named_without_its_password(monkeypatch):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        proxy = f"127.0.0.1:{closed.getsockname()[1]}"
        monkeypatch.setenv("https_proxy", f"http://user:secret@{proxy}")
        async with Client.connect(ClusterConfig(server="https://cluster.example")) as client:
            with pytest.raises(Unreachable) as caught:
                await client.get(CONFIG_MAPS, "a")
    assert str(caught.value) == f"cannot reach https://cluster.example through the proxy {proxy}: connection refused"


async def test_a_name_that_does_not_resolve_is_one_clear_line(monkeypatch):
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)  # a machine without a name server would wait for it
    async with Client.connect(ClusterConfig(server="https://no-such-host.invalid")) as client:
        with pytest.raises(Unreachable, match=r"cannot reach https://no-such-host.invalid: ") as caught:
            await client.get(CONFIG_MAPS, "a")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(302, Unreachable), (403, Unreachable), (404, Unreachable), (401, Unauthorized), (503, ServiceUnavailable)],
)
async def test_a_proxys_page_is_not_taken_for_what_an_api_server_says(script, status, kind):
    script.will(lambda _: web.Response(text="<html>Log in</html>", content_type="text/html", status=status))
    async with Client.connect(script.config()) as client:
        with pytest.raises(kind, match=f"{script.url} answered {status} with a web page"):
            await client.get(CONFIG_MAPS, "a")


async def test_a_page_that_is_not_from_an_api_server_is_one_clear_line(script):
    script.will(lambda _: web.Response(text="<html>Welcome to the proxy</html>"))
    async with Client.connect(script.config()) as client:
        for call in (client.get(CONFIG_MAPS, "a"), client.list(CONFIG_MAPS), client.request("GET", "/version")):
            with pytest.raises(Unreachable, match="did not answer as an API server does"):
                await call


@pytest.mark.parametrize("answer", [[], None, "text", 3, {}, {"metadata": None}, {"metadata": []}], ids=str)
async def test_json_that_is_no_object_is_one_clear_line(script, answer):
    script.will(web.json_response({"items": [answer]}), web.json_response(answer))
    async with Client.connect(script.config()) as client:
        with pytest.raises(Unreachable, match=r"the server's list of configmaps holds what is no object"):
            await client.list(CONFIG_MAPS)
        with pytest.raises(Unreachable, match="did not answer as an API server does"):
            await client.get(CONFIG_MAPS, "a")


@pytest.mark.parametrize("answer", [[], None, "text"], ids=str)
async def test_a_version_that_is_no_map_is_one_clear_line(script, answer):
    script.will(web.json_response(answer))
    async with Client.connect(script.config()) as client:
        with pytest.raises(Unreachable, match="did not answer as an API server does"):
            await client.server_version()


def streamed(*pieces: bytes):
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        return response

    return answer


async def seen(client: Client) -> list[str]:
    async with aclosing(client.watch(CONFIG_MAPS, resource_version="1")) as events:
        return [event.type async for event in events]


async def test_a_watch_ends_where_the_server_ends_it(script):
    versioned = {**OBJECT, "metadata": {"name": "a", "resourceVersion": "2"}}
    lines = [orjson.dumps({"type": kind, "object": versioned}) + b"\n" for kind in ("ADDED", "BOOKMARK")]
    script.will(streamed(*lines))
    async with Client.connect(script.config()) as client:
        assert await seen(client) == ["ADDED", "BOOKMARK"]
    assert script.requests[0].query["allowWatchBookmarks"] == "true"
    assert script.requests[0].query["resourceVersion"] == "1"


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        (b"ADDED", b"[]"),
        (b"ADDED", b"{}"),
        (b"ADDED", b'{"metadata":{"name":"a"}}'),
        (b"ADDED", b'{"metadata":{"resourceVersion":2}}'),
        (b"RENAMED", b'{"metadata":{"name":"a","resourceVersion":"2"}}'),
    ],
)
async def test_an_event_of_no_kind_or_without_an_object_and_its_version_is_a_broken_watch(script, kind, obj):
    script.will(streamed(b'{"type":"' + kind + b'","object":' + obj + b"}\n"))
    async with Client.connect(script.config()) as client:
        with pytest.raises(Unreachable, match="did not answer as an API server does"):
            await seen(client)


async def test_half_a_line_is_a_broken_watch(script):
    script.will(streamed(b'{"type":"ADDED","object":{"apiVer'))
    async with Client.connect(script.config()) as client:
        with pytest.raises(Unreachable):
            await seen(client)


async def test_a_server_that_takes_the_call_and_says_nothing_is_given_up(script, monkeypatch):
    async def never(_: web.Request) -> web.Response:
        await asyncio.sleep(600)
        raise AssertionError

    monkeypatch.setattr(transport, "HEADER_SECONDS", 0.05)
    script.will(never)
    async with Client.connect(script.config()) as client:
        with pytest.raises(Unreachable, match="silence on GET"):
            await seen(client)


@pytest.mark.parametrize(
    ("server", "proxy"),
    [
        ("https://cluster.example:6443", "http://proxy.example:3128"),
        ("https://cluster.internal", None),
        ("https://127.0.0.1:6443", None),
        ("http://cluster.example", None),
    ],
)
def test_the_proxy_is_that_of_the_environment(monkeypatch, server, proxy):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.delenv("http_proxy", raising=False)
    monkeypatch.setenv("no_proxy", ".internal")
    assert transport._proxy_of(server) == proxy


async def test_an_error_in_the_stream_is_raised(script):
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    script.will(streamed(orjson.dumps({"type": "ERROR", "object": status}) + b"\n"))
    async with Client.connect(script.config()) as client:
        with pytest.raises(Gone, match="too old"):
            await seen(client)


async def test_a_list_that_names_no_kinds_gets_them(script):
    pages = [
        {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [{"metadata": {"name": "a"}}]},
        {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "b"}}]},
    ]
    script.will(*(web.json_response(page) for page in pages))
    async with Client.connect(script.config()) as client:
        items, version = await client.list(CONFIG_MAPS)
    assert version == "7"
    assert [(item["kind"], item["metadata"]["name"]) for item in items] == [("ConfigMap", "a"), ("ConfigMap", "b")]
    assert [request.query.get("continue") for request in script.requests] == [None, "more"]


async def test_a_busy_server_gets_children_before_statuses_and_reads_at_once(script):
    """Writes wait for their turn, the patient ones longest; a read and the lease go past all of them."""
    first, others, begun = asyncio.Event(), asyncio.Event(), []

    async def hold(request: web.Request) -> web.Response:
        begun.append(request.path.rpartition("/")[2])
        if begun[-1] == "filling":
            await (first if len(begun) == 1 else others).wait()
        return web.json_response(OBJECT)

    def named(name: str):
        return {**OBJECT, "metadata": {"name": name, "namespace": "ns"}}

    script.will(hold)
    async with Client.connect(script.config()) as client:
        filling = [
            asyncio.create_task(client.update(CONFIG_MAPS, named("filling"))) for _ in range(transport.WRITES_AT_ONCE)
        ]
        await until(lambda: len(begun) == transport.WRITES_AT_ONCE)
        waiting = [
            asyncio.create_task(client.update(CONFIG_MAPS, named(name), patience=patience))
            for name, patience in (("event", 60), ("status", 30), ("child", 0))
        ]
        await client.get(CONFIG_MAPS, "read", "ns")
        await client.without_fence().update(CONFIG_MAPS, named("lease"))
        first.set()  # one turn comes free
        await waiting[-1]
        assert begun[transport.WRITES_AT_ONCE :] == ["read", "lease", "child"]
        others.set()
        await asyncio.gather(*filling, *waiting)
    assert {*begun[-2:]} == {"status", "event"}

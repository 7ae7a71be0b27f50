"""Who may use the gateway: not other sites' pages, and as a proxy nobody but pods."""

from __future__ import annotations

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web
from tests.unit.local.gateway.conftest import running_gateway
from tests.unit.local.gateway.raw import exchange, named

from isvc.local.gateway.envoy.bootstrap import Front
from isvc.local.gateway.login import Login


@pytest_asyncio.fixture(loop_scope="session")
async def served(gateway, sites):
    await gateway.service("s", (await sites(named("served")), True))
    await gateway.route("h.test", ("s", 1))
    return gateway


def request(**headers: str) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"POST / HTTP/1.1\r\n{lines}Content-Length: 0\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec_Fetch_Site": "none"}, 200),
        ({"Sec_Fetch_Site": "same-origin", "Origin": "http://h.test"}, 200),
        ({"Origin": "http://h.test"}, 200),
        ({"Origin": "http://allowed.test", "Sec_Fetch_Site": "cross-site"}, 200),
        ({"Sec_Fetch_Site": "cross-site"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://h.test.evil.test"}, 403),
    ],
)
async def test_pages(served, headers: dict[str, str], status: int) -> None:
    answer = await exchange(served.port, request(Host="h.test", **headers))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost", 200), ("127.0.0.1:8080", 200), ("[::1]", 200), ("192.168.0.7", 200), ("allowed.test", 200),
     ("evil.test:8080", 404)],
)  # fmt: skip
async def test_a_page_whose_name_leads_here_by_now(served, host: str, status: int) -> None:
    """DNS rebinding: for the browser page and request are of one origin, so it neither refuses nor hides anything."""
    await served.route("", ("s", 1))  # for any host
    asked = await exchange(served.port, request(Host=host))
    assert asked.startswith(f"HTTP/1.1 {status} ".encode())
    posted = await exchange(served.port, request(Host="evil.test", Origin="http://evil.test"))
    assert posted.startswith(b"HTTP/1.1 403 ")


PAGE = {"Origin": "http://allowed.test", "Sec-Fetch-Site": "cross-site"}
QUESTION = {"Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "authorization,x-own"}


@pytest.mark.parametrize("path", ["/", "/only-post", "/nowhere"])
async def test_a_page_that_is_let_in_is_told_so_before_it_asks(served, path: str) -> None:
    """Browsers ask first (OPTIONS) for all that a form could not send, such as JSON; model servers do not answer."""
    ref = {"backendRefs": [{"name": "s", "port": 80}]}
    only_post = {**ref, "matches": [{"path": {"value": "/only-post"}, "method": "POST"}]}
    only_root = {**ref, "matches": [{"path": {"type": "Exact", "value": "/"}}]}
    await served.http_route(["h.test"], [only_post, only_root])
    async with served.session.options(path, headers={**PAGE, **QUESTION, "Host": "h.test"}) as answer:
        assert (answer.status, await answer.text()) == (200, "")
        assert answer.headers["Access-Control-Allow-Origin"] == "http://allowed.test"
        assert answer.headers["Access-Control-Allow-Methods"] == "PUT"
        assert answer.headers["Access-Control-Allow-Headers"] == "authorization,x-own"


@pytest.mark.parametrize(
    ("host", "path", "status"),
    [("h.test", "/", 200), ("unknown.localhost", "/", 404), ("localhost", "/-/metrics", 200)],
)
async def test_a_page_that_is_let_in_may_read_the_answer(served, host: str, path: str, status: int) -> None:
    async with served.session.get(path, headers={**PAGE, "Host": host}) as answer:
        assert answer.status == status
        assert answer.headers.getall("Access-Control-Allow-Origin") == ["http://allowed.test"]
        assert answer.headers["Access-Control-Expose-Headers"] == "*"


@pytest.mark.parametrize(("origin", "status"), [("http://evil.test", 403), ("http://h.test", 200), ("", 200)])
async def test_nobody_else_is_told_that_pages_are_let_in(served, origin: str, status: int) -> None:
    headers = {**({"Origin": origin} if origin else {}), "Host": "h.test"}
    for ask in (served.session.get, served.session.options):
        async with ask("/", headers={**headers, **QUESTION}) as answer:
            assert answer.status == status
            assert not [name for name in answer.headers if name.startswith("Access-Control")]


async def test_only_this_machine_is_told_the_hosts(served) -> None:
    for host in ("localhost:8080", "127.0.0.1", "[::1]:8080", "x.localhost"):
        assert b"h.test" in await exchange(served.port, request(Host=host))
    for host in ("evil.test", "localhost.evil.test", "127.0.0.1.evil.test"):
        answer = await exchange(served.port, request(Host=host))
        assert answer.startswith(b"HTTP/1.1 404 ")
        assert b"h.test" not in answer


@pytest.mark.parametrize("login", [None, "Basic cG9kOg==", "Basic cG9kOndyb25n", "Bearer x", "Basic", "Basic %%"])
async def test_the_proxy_is_for_pods(served, sites, login: str | None) -> None:
    outside = await sites(named("outside"))
    credential = f"Proxy-Authorization: {login}\r\n" if login else ""
    for target in (f"http://127.0.0.1:{outside}/", "http://s.default/", "http://example.com/"):
        head = f"GET {target} HTTP/1.1\r\nHost: x\r\n{credential}Content-Length: 0\r\n\r\n"
        answer = await exchange(served.pods_port, head.encode())
        assert answer.startswith(b"HTTP/1.1 407 ")
        assert b"proxy-authenticate: Basic" in answer
        assert b"outside" not in await exchange(served.port, head.encode())  # the gateway itself is nobody's proxy


async def test_in_a_sandbox_the_proxy_leads_not_to_this_machine(tmp_path, sites) -> None:
    outside = await sites(named("outside"))
    async with running_gateway(tmp_path, Front(), sandbox=True) as sandboxed, aiohttp.ClientSession() as pod:
        for host in ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "169.254.169.254"):
            answer = await pod.get(f"http://{host}:{outside}/", proxy=sandboxed.gateway.proxy_url)
            assert answer.status == 403, host
            assert "sandbox" in (await answer.json())["error"]


async def test_what_only_the_gateway_may_say_is_not_taken_from_clients(served, sites) -> None:
    """Neither that a request is a pod's, nor which endpoint it goes to."""
    answer = await exchange(served.port, request(Host="s.default", X_Isvc_Pod="1"))
    assert answer.startswith(b"HTTP/1.1 404 ")
    seen: list[dict[str, str]] = []

    async def remember(asked):
        seen.append({name.lower(): value for name, value in asked.headers.items()})
        return web.Response()

    await served.service("s", (await sites(remember), True))
    await exchange(served.port, request(Host="h.test", X_Gateway_Destination_Endpoint="127.0.0.1:1"))
    assert not {"x-isvc-pod", "x-gateway-destination-endpoint", "proxy-authorization"} & seen[0].keys()


async def test_short_names_are_for_pods(served) -> None:
    assert (await exchange(served.port, request(Host="s.default"))).startswith(b"HTTP/1.1 404 ")
    async with (
        aiohttp.ClientSession() as pod,
        pod.get("http://s.default/", proxy=served.gateway.proxy_url) as answer,
    ):
        assert await answer.text() == "served"


@pytest.mark.parametrize("host", ["s.default.svc", "s.default.svc:80", "s.default.svc.cluster.local", "t.default.svc"])
async def test_full_names_of_the_cluster_are_for_everybody_whichever_a_route_has(served, host) -> None:
    await served.http_route(["t.default.svc.cluster.local"], [{"backendRefs": [{"name": "s", "port": 80}]}], "full")
    assert (await exchange(served.port, request(Host=host))).startswith(b"HTTP/1.1 200 ")


async def test_credentials_are_new_at_every_start() -> None:
    assert Login().proxy_url(1) != Login().proxy_url(1)


async def test_nothing_of_the_users_goes_along(served, sites, monkeypatch, tmp_path) -> None:
    """Neither ~/.netrc, beside an Authorization of the client's own or without one, nor cookies of other clients."""
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\nmachine localhost login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    seen: list[dict[str, str]] = []

    async def remember(request):
        seen.append(dict(request.headers))
        return web.Response(headers={"Set-Cookie": "session=alice"})

    outside = await sites(remember)
    await served.service("s", (outside, True))
    proxy = served.gateway.proxy_url
    for target in (f"http://localhost:{outside}/", "http://s.default/"):
        for headers in ({}, {"Authorization": "Bearer mine"}, {}):
            async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as pod:
                answer = await pod.get(target, proxy=proxy, headers=headers)
                assert answer.status == 200
                assert answer.headers["Set-Cookie"] == "session=alice"
    assert len(seen) == 6
    assert [headers.get("Authorization") for headers in seen] == [None, "Bearer mine", None] * 2
    assert not any("Cookie" in headers or "Proxy-Authorization" in headers for headers in seen)

"""What the gateway counts and logs."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web
from tests.unit.local.gateway.conftest import running_gateway
from tests.unit.local.gateway.grpc_echo import channel_to, echoing
from tests.unit.local.gateway.raw import exchange, named
from tests.waiting import until

from isvc.local.gateway.envoy.bootstrap import Front
from isvc.serving.workload.service import H2C


async def metrics(gateway) -> dict[str, float]:
    answer = await gateway.session.get("/-/metrics", headers={"Host": "localhost"})
    lines = (await answer.text()).splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if line[0] != "#")}


async def test_requests_are_counted_by_service_and_code(gateway, sites):
    await gateway.service("counted", (await sites(named("served")), True))
    await gateway.route("h.test", ("counted", 1))
    before = await metrics(gateway)
    for _ in range(3):
        await gateway.session.get("/")
    for number in range(5):
        await gateway.session.get("/", headers={"Host": f"made-up-{number}.test"})
    found = await metrics(gateway)
    assert found['isvc_gateway_requests_total{code="200",service="default/counted"}'] == 3
    refused = 'isvc_gateway_requests_total{code="404",service="-"}'
    assert found[refused] - before.get(refused, 0) == 5
    assert found['isvc_gateway_response_bytes_total{service="default/counted"}'] == 3 * len("served")
    assert found["isvc_gateway_requests_in_flight"] == 1  # this one
    assert not any("made-up" in name for name in found)

    async def durations() -> bool:
        name = "isvc_gateway_request_duration_seconds"
        found = await metrics(gateway)
        ended, quick = (
            f'{name}_count{{service="default/counted"}}',
            f'{name}_bucket{{le="300",service="default/counted"}}',
        )
        return found.get(ended) == found.get(quick) == 3

    await until(durations, "the durations")


async def test_only_this_machine_reads_them(gateway, sites):
    await gateway.service("s", (await sites(named("served")), True))
    await gateway.route("h.test", ("s", 1))
    assert await (await gateway.session.get("/-/metrics")).text() == "served"  # a path of the service's
    foreign = {"Host": "localhost", "Origin": "http://evil.test"}
    assert (await gateway.session.get("/-/metrics", headers=foreign)).status == 403


async def test_a_client_that_leaves_first_is_counted(gateway, sites):
    arrived = asyncio.Event()

    async def slow(request: web.BaseRequest) -> web.Response:
        arrived.set()
        await asyncio.sleep(600)
        return web.Response()

    await gateway.service("s", (await sites(slow), True))
    await gateway.route("h.test", ("s", 1))
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: h.test\r\n\r\n")
    async with asyncio.timeout(60):
        await arrived.wait()
        assert (await metrics(gateway))["isvc_gateway_requests_in_flight"] == 2
        writer.close()
        while 'isvc_gateway_requests_total{code="499",service="default/s"}' not in await metrics(gateway):
            await asyncio.sleep(0.01)


async def test_grpc_is_counted(gateway):
    async with echoing() as (_, port), channel_to(gateway.port) as channel:
        await gateway.service("called", (port, True), appProtocol=H2C)
        await gateway.route("h.test", ("called", 1))
        await channel.unary_unary("/echo.Echo/Unary")(b"hello", timeout=60)
    found = await metrics(gateway)
    assert found['isvc_gateway_requests_total{code="200",service="default/called"}'] == 1
    assert found['isvc_gateway_response_bytes_total{service="default/called"}'] == len(b"\0\0\0\0\5HELLO")


ODD = (
    b"GET /a?token=secret HTTP/1.1\r\nHost: h.test\r\nReferer: http://x.test/?token=secret\r\n"
    b'User-Agent: "quoted" \\ \xfc\r\nAuthorization: Bearer secret\r\nCookie: secret\r\n\r\n'
)


@pytest.mark.parametrize("as_json", [False, True], ids=["combined", "json"])
async def test_a_line_for_each_request_and_no_secrets(sites, tmp_path, as_json):
    path = tmp_path / "access.log"
    async with running_gateway(tmp_path, Front(access_log=str(path), access_log_json=as_json)) as logged:
        await logged.service("s", (await sites(named("served")), True))
        await logged.route("h.test", ("s", 1))
        await exchange(logged.port, ODD)
        await exchange(logged.port, b"GET / HTTP/1.1\r\nHost: nobody.test\r\n\r\n")
        await exchange(logged.port, b"GET / HTTP/1.1\r\nHost: h.test/x\r\n\r\n")
    text = path.read_text(errors="surrogateescape")
    assert "secret" not in text
    lines = text.splitlines()
    if as_json:
        documents = [json.loads(line) for line in lines]
        first = documents[0]
        assert (first["method"], first["path"], first["status"], first["bytes"]) == ("GET", "/a", 200, 6)
        assert (first["service"], first["host"], first["protocol"]) == ("default/s", "h.test", "HTTP/1.1")
        assert [each["status"] for each in documents] == [200, 404, 400]
    else:
        assert '"GET /a HTTP/1.1" 200 6 "http://x.test/" "\\"quoted\\" \\\\ ' in lines[0]
        assert lines[0].endswith(" default/s")
        assert [line.split('" ')[1].split()[0] for line in lines] == ["200", "404", "400"]

"""The door: who is let in, and what happens to those who misbehave."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from dataclasses import replace

import aiohttp
import pytest
from tests.unit.apiserver.conftest import CONFIG_MAPS

from isvc.kube.errors import Unauthorized
from isvc.kube.objects import name_of
from isvc.kube.resource import NAMESPACES
from isvc.toolkit.client import Client
from isvc.toolkit.client.kubeconfig import ClusterConfig

MIB = 1 << 20


async def raw(server, data: bytes, awaited: bytes = b"", times: int = 1) -> bytes:
    """What the server answers to some bytes before it has said what is awaited, hangs up or falls silent."""
    host, _, port = server.url.removeprefix("https://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=ssl._create_unverified_context())
    silence = 60 if awaited else 1
    answer = b""
    try:
        writer.write(data)
        while chunk := await asyncio.wait_for(reader.read(1 << 16), silence):
            answer += chunk
            if awaited and answer.count(awaited) >= times:
                break
    except (TimeoutError, ConnectionError):
        pass
    writer.close()
    return answer


async def alive(http) -> bool:
    return (await http.ask("GET", "/readyz")).text == "ok"


async def test_anonymous_requests_get_401_but_health_is_open(http):
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=False)) as stranger:
        for path, code in {CONFIG_MAPS: 401, "/version": 401, "/nope": 401, "/healthz": 200, "/readyz": 200}.items():
            async with stranger.get(http.server.url + path) as answer:
                assert answer.status == code, path
        headers = {"Authorization": "Bearer wrong"}
        async with stranger.get(http.server.url + CONFIG_MAPS, headers=headers) as answer:
            assert answer.status == 401
            assert (await answer.json())["reason"] == "Unauthorized"


async def test_a_socket_in_the_file_system_takes_a_token_without_tls_also_where_a_killed_server_left_one(
    start, tmp_path
):
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    server = await start(ephemeral=True, socket=path)
    config = ClusterConfig(server.url, socket=str(path), token=server.identity.admin_token)
    async with Client.connect(config) as ours, Client.connect(replace(config, token="wrong")) as stranger:
        assert [name_of(each) for each in (await ours.list(NAMESPACES)).items if name_of(each) == "default"]
        with pytest.raises(Unauthorized):
            await stranger.list(NAMESPACES)
    await server.stop()


async def test_a_client_certificate_is_as_good_as_the_token(http):
    pki = http.server.identity.folder
    context = ssl.create_default_context(cafile=pki / "ca.crt")
    context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        async with session.post(http.server.url + path, json={}) as answer:
            assert answer.status == 201
            assert (await answer.json())["status"]["userInfo"]["username"] == "isvc-admin"


async def test_secrets_on_disk_are_for_the_owner_only(http):
    for path in http.server.identity.folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"{", "application/json", 400),
        (b"", "application/json", 400),
        (b"[]", "application/json", 400),
        (b'"x"', "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b'{"metadata": {"name": 1}}', "application/json", 400),
        (b'{"metadata": 1}', "application/json", 400),
        (b'{"data": ' + b'{"a": ' * 5000 + b"1" + b"}" * 5001, "application/json", 400),
        (b"a: [", "application/yaml", 400),
        (b"k8s\x00junk", "application/vnd.kubernetes.protobuf", 400),
        (b"{}", "text/plain", 415),
        (b"{}", "application/json", 422),
    ],
)
async def test_bodies_that_make_no_sense(http, body, kind, code):
    answer = await http.ask("POST", CONFIG_MAPS, body, kind)
    assert answer.code == code, answer.text
    assert answer.body["kind"] == "Status"
    assert await alive(http)


async def test_deep_nesting_that_json_allows_is_refused_politely(http):
    deep = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","annotations":' + b'{"a":' * 400 + b"1"
    answer = await http.ask("POST", CONFIG_MAPS, deep + b"}" * 402)
    assert answer.code == 400
    patch = b'{"metadata":' + b'{"a":' * 900 + b"1" + b"}" * 901
    await http.create(CONFIG_MAPS, metadata={"name": "b"})
    assert (await http.ask("PATCH", f"{CONFIG_MAPS}/b", patch, "application/merge-patch+json")).code in (200, 400, 422)
    assert await alive(http)


@pytest.mark.parametrize("size", [3 * MIB + 1, 20 * MIB])
async def test_bodies_over_3_mib_get_413(http, size):
    answer = await http.ask("POST", CONFIG_MAPS, b'{"a":"' + b"x" * size + b'"}')
    assert answer.code == 413
    assert answer.message == "Request entity too large: limit is 3145728"
    assert await alive(http)


async def test_a_chunked_body_is_limited_too(http):
    async def endless():
        for _ in range(8):
            yield b"x" * MIB

    try:
        async with http.session.post(http.server.url + CONFIG_MAPS, data=endless()) as answer:
            assert answer.status == 413
    except aiohttp.ClientError:
        pass  # the connection may be closed before the client has sent all of it
    assert await alive(http)


async def test_a_body_just_within_the_limit_is_read(http):
    body = b'{"metadata":{"name":"big"},"data":{"a":"' + b"x" * (MIB - 1000) + b'"}}'
    assert (await http.ask("POST", CONFIG_MAPS, body)).code == 201


async def test_what_is_not_http_gets_400_or_nothing(http):
    assert (await raw(http.server, b"\x00\x01garbage\r\n\r\n", b"\r\n\r\n")).startswith(b"HTTP/1.1 400")
    assert (await raw(http.server, b"GET / HTTP/9.9\r\n\r\n"))[:12] in (b"HTTP/1.1 400", b"")
    long = b"GET / HTTP/1.1\r\nX: " + b"a" * 200_000
    assert (await raw(http.server, long, b"\r\n\r\n")).startswith(b"HTTP/1.1 431")
    assert await alive(http)


async def test_it_keeps_serving_through_a_flood_of_garbage(http):
    dice = random.Random(1)
    heads = [b"", b"GET ", b"POST /api HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nZZ"]
    flood = [dice.choice(heads) + dice.randbytes(dice.randrange(2000)) for _ in range(60)]
    await asyncio.gather(*(raw(http.server, data) for data in flood))
    assert await alive(http)
    assert (await http.ask("GET", CONFIG_MAPS)).code == 200


async def test_requests_sent_ahead_are_answered_in_order(http):
    token = http.server.identity.admin_token
    names = ["kube-system", "nope", "default"]
    asked = b"".join(
        f"GET /api/v1/namespaces/{name} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        for name in names
    )
    answers = (await raw(http.server, asked, b"HTTP/1.1 ", 3)).split(b"HTTP/1.1 ")[1:]
    assert [int(answer[:3]) for answer in answers] == [200, 404, 200]


async def test_a_long_queue_of_requests_is_worked_off(http):
    token = http.server.identity.admin_token
    body = b'{"metadata":{"generateName":"q-"}}'
    head = (
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n\r\n"
    )
    answers = await raw(http.server, (head.encode() + body) * 50, b"HTTP/1.1 201", 50)
    assert answers.count(b"HTTP/1.1 201") == 50


async def test_expect_continue(http):
    token = http.server.identity.admin_token
    body = b'{"metadata":{"name":"polite"}}'
    head = (
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nExpect: 100-continue\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: application/json\r\n\r\n"
    )
    answer = await raw(http.server, head.encode() + body, b"HTTP/1.1 201")
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nope", 404),
        ("GET", "/api/v1/foos", 404),
        ("GET", "/apis/none.io/v1/foos", 404),
        ("GET", "/api/v1/namespaces/default/configmaps/a/b/c/d", 404),
        ("GET", "/api/v1/namespaces//configmaps", 404),
        ("PUT", CONFIG_MAPS, 405),
        ("POST", f"{CONFIG_MAPS}/a", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("POST", "/api/v1/configmaps", 405),
        ("BREW", CONFIG_MAPS, 400),
    ],
)
async def test_paths_and_methods_that_do_not_exist(http, method, path, code):
    assert (await http.ask(method, path, b"{}")).code == code


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(["a: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]),
        "a: &a [*a]",
        "\n".join(["a0: &a0 {x: x}", *(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}" for n in range(1, 20))]),
    ],
)
async def test_a_few_lines_of_yaml_cannot_stand_for_millions(http, text):
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: bomb}}\n{text}\n"
    answer = await http.ask("POST", CONFIG_MAPS, body.encode(), "application/yaml")
    assert (answer.code, "excessive aliasing" in answer.message) == (400, True)
    fair = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fair}\ndata: {a: &a x, b: *a}\n"
    answer = await http.ask("POST", CONFIG_MAPS, fair.encode(), "application/yaml")
    assert answer.body["data"] == {"a": "x", "b": "x"}


async def test_the_answer_to_head_has_no_body(http):
    asked = b"HEAD /readyz HTTP/1.1\r\nHost: x\r\n\r\nGET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
    first, second = (await raw(http.server, asked, b"\r\n\r\n", 2)).split(b"HTTP/1.1 ")[1:]
    assert first.endswith(b"\r\n\r\n")
    assert second.startswith(b"200 ")

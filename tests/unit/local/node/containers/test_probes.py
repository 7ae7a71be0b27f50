"""Probes of ports on which nothing listens, or nothing answers."""

from __future__ import annotations

import asyncio

import pytest
from tests.ports import free_port

from isvc.local.node.containers import probes
from isvc.local.node.containers.probes import Answer, Asker, over_http


async def run(words: list[str]) -> tuple[int, str]:
    raise AssertionError(words)


@pytest.mark.parametrize(
    ("probe", "port"),
    [
        ({"httpGet": {"path": "/", "port": 8080}, "timeoutSeconds": 5}, "8080"),
        ({"tcpSocket": {"port": "http"}, "periodSeconds": 1}, "http"),
    ],
)
async def test_the_port_is_named_as_the_container_knows_it(probe, port):
    container = {"ports": [{"name": "http", "containerPort": 8080}]}
    answer = await Asker(container, {8080: free_port()}, run).ask(probe)
    assert answer == (False, f"nothing listens on port {port}: connection refused")


def test_a_server_is_asked_itself_where_it_has_an_answer():
    probe = {"tcpSocket": {"port": 8080}, "periodSeconds": 3}
    asked = {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 3}
    assert over_http(probe, {}, "/ready") == asked
    assert over_http(probe, {}, "") is probe
    assert over_http(asked, {}, "/other") is asked
    with_tls = over_http(probe, {"args": ["--ssl-certfile=/tls/crt"]}, "/ready")
    assert with_tls["httpGet"] == {"path": "/ready", "port": 8080, "scheme": "HTTPS"}
    assert over_http(probe, {"ports": [{"containerPort": 8080, "name": "h2c"}]}, "/ready") is probe


async def test_who_says_something_is_asked_at_once(monkeypatch):
    """Nothing else would bring the second question in the time of a test."""
    monkeypatch.setattr(probes, "_EAGER", 3600.0)
    monkeypatch.setattr(probes, "_LONGEST_PAUSE", 3600.0)
    said = asyncio.Event()

    async def ask(probe: object) -> Answer:
        return Answer(said.is_set())

    heard = probes.answers({"periodSeconds": 3600}, ask, lambda: said)
    assert await anext(heard) == (False, "")
    answer = asyncio.ensure_future(anext(heard))
    asyncio.get_running_loop().call_soon(said.set)
    assert await answer == (True, "")

"""Probes of ports on which nothing listens, or nothing answers."""

from __future__ import annotations

import pytest
from tests.ports import free_port

from isvc.local.node.containers.probes import Asker


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

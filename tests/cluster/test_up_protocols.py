"""What besides plain requests goes through the gateway of `isvc up`, as clients of other protocols see it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cluster.local_machine import HAS_TOOLS, Machine, machine, running
from websockets.sync.client import connect

pytestmark = pytest.mark.skipif(not HAS_TOOLS, reason="needs kubectl and curl")


@pytest.fixture(scope="module")
def here(models, tmp_path_factory) -> Iterator[Machine]:
    with running(machine(tmp_path_factory.mktemp("up"), models)) as here:
        yield here


def test_a_server_that_speaks_websocket(here):
    here.kubectl("apply", "-f", "examples/websocket.yaml")
    here.wait_ready("echo")
    url = here.get("isvc", "echo")["status"]["url"].replace("http://", "ws://")
    with connect(url, proxy=None) as socket:
        for message in ("hello", "again"):
            socket.send(message)
            assert socket.recv(60) == message.upper()
    here.kubectl("delete", "-f", "examples/websocket.yaml")

"""The engine, and the server that it writes to."""

from __future__ import annotations

import pytest
from tests.unit.engine.server import Memory, Server

from isvc.engine.apply import Engine


@pytest.fixture
def server():
    return Server()


@pytest.fixture
def engine(server):
    return Engine(server, Memory(server))

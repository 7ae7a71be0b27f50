"""One kube-apiserver for each module: what the cases of one leave behind, another may not find."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.recorded_cluster.servers import AuditedServer, Servers


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.stop()


@pytest.fixture
def server() -> Iterator[AuditedServer]:
    """One that a test has to itself."""
    running = AuditedServer()
    yield running
    running.stop()

"""One kube-apiserver for all tests of this folder: it takes most of a minute to know all kinds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.recorded_cluster.servers import Servers


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    running = Servers()
    yield running
    running.stop()

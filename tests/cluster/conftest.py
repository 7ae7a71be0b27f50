"""What tests share that compare the embedded API server with a real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.differential.wire import Wire
from tests.servers import Cluster, discard, start


@pytest.fixture(scope="session")
def both(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Wire, Wire]]:
    """A real kube-apiserver and an embedded one."""
    if cluster.kind != "kube-apiserver":
        pytest.skip("compares with a real kube-apiserver: run make test-kube")
    embedded = start("embedded", Path(tmp_path_factory.mktemp("embedded")))
    wires = Wire(cluster.url, cluster.token), Wire(embedded.url, embedded.token)
    yield wires
    for wire in wires:
        wire.close()
    discard(embedded)

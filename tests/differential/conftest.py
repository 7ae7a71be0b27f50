"""Both API servers side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import Cluster, discard, start
from tests.wire import Wire


@pytest.fixture(scope="session")
def both(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Wire, Wire]]:
    """A real kube-apiserver and an embedded one."""
    assert cluster.kind == "kube-apiserver", "add --cluster=kube-apiserver, as `make test-kube` does"
    embedded = start("embedded", Path(tmp_path_factory.mktemp("embedded")))
    wires = Wire(cluster.url, cluster.token), Wire(embedded.url, embedded.token)
    yield wires
    for wire in wires:
        wire.close()
    discard(embedded)

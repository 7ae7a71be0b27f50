"""What the suites share: both API servers side by side, and the models of the examples."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.differential.wire import Wire
from tests.cluster.local_machine import needs_embedded
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


@pytest.fixture(scope="session")
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models that `isvc up` puts into its claim, trained once for all suites that run it."""
    needs_embedded(request)
    from isvc.local.examples import train

    folder = tmp_path_factory.mktemp("models")
    train(folder)
    return folder

"""`isvc-manager` installed on a kube-apiserver of its own: webhooks and the lease belong to the whole cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.production.balancer import Balancer
from tests.production.installation import Installation
from tests.servers import discard, start

from isvc.toolkit.client import Client, kubeconfig


@pytest.fixture
async def installation(tmp_path: Path) -> AsyncIterator[Installation]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    cluster = start("kube-apiserver", folder)
    try:
        async with Client.connect(kubeconfig.load(cluster.kubeconfig)) as client, Balancer() as balancer:
            installed = Installation(cluster, client, balancer, tmp_path)
            await installed.set_up()
            try:
                yield installed
            finally:
                await installed.stop()
            assert installed.refusals() == []
    finally:
        discard(cluster)

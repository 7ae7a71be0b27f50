"""`isvc-manager` installed on a kube-apiserver of its own: webhooks and the lease belong to the whole cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.production.installation import Installation, installed


@pytest.fixture
async def installation(tmp_path: Path) -> AsyncIterator[Installation]:
    async with installed(tmp_path) as made:
        yield made
    assert made.refusals() == []

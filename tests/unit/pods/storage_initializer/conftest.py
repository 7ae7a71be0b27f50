"""Parts that the tests of several schemes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.unit.pods.storage_initializer.sites import Site, site

from isvc.pods.storage_initializer import fetching


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits between attempts."""
    monkeypatch.setattr(fetching.Patience, "seconds", lambda self, failures: 0.0)


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as made:
        yield made

"""The longest tests first, so that nobody waits for them in the end: those that play a profile."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: "profile" not in getattr(item, "fixturenames", ()))

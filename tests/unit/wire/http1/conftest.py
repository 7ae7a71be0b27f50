"""Every test runs on both event loops: programs use uvloop where it is to be had, and asyncio's elsewhere."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    if "without_collector" in getattr(item, "fixturenames", ()):  # asyncio's own transports are cycles
        return {"uvloop": uvloop.new_event_loop}
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@pytest.fixture
def without_collector() -> Iterator[None]:
    """Has nothing freed but what nobody refers to any more."""
    gc.disable()
    yield
    gc.enable()

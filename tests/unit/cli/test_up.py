"""What `isvc up` does beside its parts."""

from __future__ import annotations

import asyncio

import pytest

from isvc.cli.dashboard import Wanted, open_entrance
from isvc.cli.up import _start_dashboard
from isvc.local.stack import Stack


async def test_nobody_waits_for_a_dashboard_that_does_not_start(capsys, caplog):
    opened = open_entrance(Wanted(port=0))
    without_a_client = Stack.__new__(Stack)
    starting = asyncio.create_task(_start_dashboard(without_a_client, Wanted(), opened))
    _, visitor = await asyncio.open_connection("127.0.0.1", opened.entrance.port)
    await starting
    visitor.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", opened.entrance.port)
    assert "the dashboard does not start ('Stack' object has no attribute 'client')" in capsys.readouterr().err
    assert "Traceback" in caplog.text

"""Where a dashboard listens."""

from __future__ import annotations

import socket

import pytest

from isvc.cli.dashboard import Wanted, open_entrance
from isvc.dashboard.entrance import Entrance
from isvc.local.node.pods.ports import is_free


def test_a_port_of_nobody_is_kept_from_others_until_the_dashboard_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    listen, guards = Entrance.listen, list[bool]()

    def look_first(entrance: Entrance) -> list[socket.socket]:
        guards.append(is_free(entrance.port // 100 * 100))  # who has the first port of a block has all of it
        return listen(entrance)

    monkeypatch.setattr(Entrance, "listen", look_first)
    opened = open_entrance(Wanted(port=0))
    for each in opened.sockets:
        each.close()
    assert guards == [False]

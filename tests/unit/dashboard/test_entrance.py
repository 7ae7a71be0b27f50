"""Where a dashboard listens."""

from __future__ import annotations

import socket

import pytest

from isvc.cli.dashboard import Wanted, open_entrance
from isvc.dashboard.entrance import Entrance
from isvc.local.node.pods.ports import Ports, is_free


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


def test_a_default_port_that_another_start_takes_in_the_last_moment_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listen = Entrance.listen
    with socket.socket() as other:

        def be_late(entrance: Entrance) -> list[socket.socket]:
            if not other.getsockname()[1]:
                other.bind(("127.0.0.1", entrance.port))
                other.listen()
            return listen(entrance)

        monkeypatch.setattr("isvc.cli.dashboard._PORT", Ports().one())
        monkeypatch.setattr(Entrance, "listen", be_late)
        opened = open_entrance(Wanted())
        for each in opened.sockets:
            each.close()
        assert opened.entrance.port != other.getsockname()[1] > 0

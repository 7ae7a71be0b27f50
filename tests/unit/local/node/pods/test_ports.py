from __future__ import annotations

import contextlib
import socket

import pytest

from isvc.local.node.pods.ports import PORTS_ANNOTATION, Ports, local_ports
from isvc.local.stack import PortBusy, port_or_free


def test_every_port_is_given_once_and_comes_round_last():
    ports = Ports()
    first = ports.allocate([8080, 9000])
    assert len(set(first.values())) == 2
    ports.release(first.values())
    assert not set(ports.allocate([8080]).values()) & set(first.values())


def test_two_homes_have_no_port_in_common_although_nobody_listens_yet():
    one, other = Ports(), Ports()
    given = [{ports.one() for _ in range(150)} for ports in (one, other)]
    assert [len(each) for each in given] == [150, 150]
    assert not given[0] & given[1]


def test_ports_that_others_listen_on_are_passed_over():
    ports = Ports()
    upcoming = next(iter(ports.allocate([1]).values())) + 1
    with socket.socket() as other:
        with contextlib.suppress(OSError):  # or somebody else listens there already
            other.bind(("127.0.0.1", upcoming))
            other.listen()
        assert upcoming not in ports.allocate([8080, 9000]).values()


def test_what_the_node_wrote_is_read_back():
    def pod(text):
        return {"metadata": {"annotations": {PORTS_ANNOTATION: text}}}

    assert local_ports(pod('{"8080": 20001}')) == {8080: 20001}
    assert local_ports(pod("nonsense")) == {}
    assert local_ports({"metadata": {}}) == {}


def test_a_default_gives_way_and_a_wish_does_not():
    spare = Ports()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert port_or_free(None, taken, spare) != taken
        assert port_or_free(0, 1, spare) >= 20_000
        with pytest.raises(PortBusy, match=f"cannot use port {taken}"):
            port_or_free(taken, 1, spare)
    free = spare.one()
    assert port_or_free(free, 1, spare) == free
    assert port_or_free(None, free, spare) == free

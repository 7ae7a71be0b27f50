from __future__ import annotations

import socket

from isvc.local.node.ports import PORTS_ANNOTATION, Ports, local_ports


def test_every_port_is_given_once_and_comes_round_last():
    ports = Ports()
    first = ports.allocate([8080, 9000])
    assert len(set(first.values())) == 2
    ports.release(first.values())
    assert not set(ports.allocate([8080]).values()) & set(first.values())


def test_ports_that_others_listen_on_are_passed_over():
    ports = Ports()
    upcoming = next(iter(ports.allocate([1]).values())) + 1
    with socket.socket() as other:
        other.bind(("127.0.0.1", upcoming))
        other.listen()
        assert upcoming not in ports.allocate([8080, 9000]).values()


def test_what_the_node_wrote_is_read_back():
    def pod(text):
        return {"metadata": {"annotations": {PORTS_ANNOTATION: text}}}

    assert local_ports(pod('{"8080": 20001}')) == {8080: 20001}
    assert local_ports(pod("nonsense")) == {}
    assert local_ports({"metadata": {}}) == {}

"""Protobuf bodies, written here by hand from the field numbers of Kubernetes' messages."""

import pytest
from tests.unit.apiserver.strategies import strategy_of

from isvc.apiserver.protobuf import decode
from isvc.kube.errors import BadRequest
from isvc.kube.resource import CONFIG_MAPS, DEPLOYMENTS, SERVICES


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(key: str, value: str | bytes) -> bytes:
    return field(1, key) + field(2, value)


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw) + field(3, "") + field(4, "")


def test_a_config_map():
    meta = field(1, "a") + field(3, "ns") + field(8, b"") + field(11, entry("app", "x"))
    raw = field(1, meta) + field(2, entry("k", "v")) + field(3, entry("bin", b"\x00\xff"))
    obj = decode(envelope("v1", "ConfigMap", raw))
    assert obj["binaryData"] == {"bin": "AP8="}
    assert strategy_of(CONFIG_MAPS).decode(obj, []) == {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": "a", "namespace": "ns", "labels": {"app": "x"}},
        "data": {"k": "v"},
        "binaryData": {"bin": "AP8="},
    }


def test_numbers_quantities_embedded_structs_and_ports():
    resources = field(1, entry("cpu", field(1, "500m")))
    volume = field(1, "v") + field(2, field(2, b""))  # VolumeSource is embedded; emptyDir is its field 2
    port = field(3, 80) + field(4, "TCP")
    container = field(1, "main") + field(2, "nginx") + field(6, port) + field(8, resources)
    template = field(1, field(11, entry("app", "x"))) + field(2, field(1, volume) + field(2, container))
    rolling = field(1, field(1, 1) + field(2, 0) + field(3, "25%")) + field(2, field(1, 0) + field(2, 2) + field(3, ""))
    spec = field(1, 0) + field(3, template) + field(4, field(1, "RollingUpdate") + field(2, rolling)) + field(5, -1)
    obj = decode(envelope("apps/v1", "Deployment", field(1, field(1, "d")) + field(2, spec)))
    assert obj["spec"]["replicas"] == 0
    assert obj["spec"]["minReadySeconds"] == -1
    assert obj["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": "25%", "maxSurge": 2}
    pod = obj["spec"]["template"]["spec"]
    assert pod["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert pod["containers"][0]["resources"] == {"limits": {"cpu": "500m"}}
    shaped = strategy_of(DEPLOYMENTS).decode(obj, [])
    assert shaped["spec"]["replicas"] == 0
    assert shaped["spec"]["template"]["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "protocol": "TCP"}]


def test_int_or_string_of_a_service_port():
    named = field(3, 80) + field(4, field(1, 1) + field(2, 0) + field(3, "http"))
    raw = field(1, field(1, "s")) + field(2, field(1, named))
    shaped = strategy_of(SERVICES).decode(decode(envelope("v1", "Service", raw)), [])
    assert shaped["spec"]["ports"] == [{"port": 80, "targetPort": "http", "protocol": "TCP"}]


def test_times():
    raw = field(1, field(1, "e")) + field(6, field(1, 1_700_000_000)) + field(10, field(1, 1) + field(2, 2_000))
    obj = decode(envelope("v1", "Event", raw))
    assert obj["firstTimestamp"] == "2023-11-14T22:13:20Z"
    assert obj["eventTime"] == "1970-01-01T00:00:01.000002Z"


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        envelope("v1", "Nonsense", b""),
        envelope("v1", "ConfigMap", b"\xff"),
        envelope("v1", "ConfigMap", b"\x0a\x7f"),
        b"k8s\0\x0a\x80",
        envelope("v1", "ConfigMap", field(1, field(1, b"\xff"))),
    ],
)
def test_what_is_no_object_is_a_bad_request(body):
    with pytest.raises(BadRequest):
        decode(body)

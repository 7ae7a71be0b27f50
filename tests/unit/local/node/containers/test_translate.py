from __future__ import annotations

import pytest
from tests.growth import assert_grows_as_its_input

from isvc.kube.pods import port_number
from isvc.local.node.containers.translate import Translation, container_ports

PORTS = {8080: 40001, 9000: 40002}
MOUNTS = {"/mnt/models": "/pods/1/volumes/models", "/mnt/models/sub": "/pods/1/volumes/sub", "/code": "/pods/1/code"}
TRANSLATION = Translation(PORTS, MOUNTS)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--http_port=8080"], ["--http_port=40001"]),
        (["--http_port", "8080"], ["--http_port", "40001"]),
        (["--port=80800"], ["--port=80800"]),
        (["--model_dir=/mnt/models"], ["--model_dir=/pods/1/volumes/models"]),
        (["/mnt/models/sub/x"], ["/pods/1/volumes/sub/x"]),
        (["/mnt/models2"], ["/mnt/models2"]),
        (["x/mnt/models"], ["x/mnt/models"]),
        (["--model_class=/code/t.py:Labels"], ["--model_class=/pods/1/code/t.py:Labels"]),
        (["--threads=8080"], ["--threads=8080"]),
        (["--size", "8080"], ["--size", "8080"]),
        (["-c", "exec vllm serve --port 8080 \\\n x"], ["-c", "exec vllm serve --port 40001 \\\n x"]),
        (
            ["--address=0.0.0.0:8080", "--url=http://localhost:9000/x"],
            ["--address=0.0.0.0:40001", "--url=http://localhost:40002/x"],
        ),
        (["--peer=http://example.com:8080/"], ["--peer=http://example.com:8080/"]),
        (["{port}", "{port:9000}", "{port:1}"], ["40001", "40002", "1"]),
        (
            ["-c", "ls /mnt/models; echo 'x /mnt/models'"],
            ["-c", "ls /pods/1/volumes/models; echo 'x /pods/1/volumes/models'"],
        ),
    ],
)
def test_command_lines(words, expected):
    assert TRANSLATION.words(words) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("MLSERVER_HTTP_PORT", "8080", "40001"),
        ("BATCH", "8080", "8080"),
        ("MODEL_DIR", "/mnt/models", "/pods/1/volumes/models"),
        ("LISTEN", ":8080", ":40001"),
        ("WHEN", "12:8080", "12:8080"),
    ],
)
def test_variables(name, value, expected):
    assert TRANSLATION.variable(name, value) == expected


def pod(**container):
    return {"spec": {"containers": [{"name": "c", **container}]}}


def test_ports_are_found_where_they_are_told():
    assert container_ports(pod()) == [8080]
    assert container_ports(pod(ports=[{"containerPort": 3000}], args=["--http_port=8080", "--grpc-port", "8081"])) == [
        3000,
        8080,
        8081,
    ]
    assert container_ports(pod(readinessProbe={"tcpSocket": {"port": 7000}})) == [7000]


def test_a_probe_may_name_its_port():
    container = {"ports": [{"name": "http", "containerPort": 3000}]}
    assert [port_number(container, port) for port in (8080, "8080", "http", "other")] == [8080, 8080, 3000, None]


def test_a_folder_may_lie_below_another_mount_path():
    mounts = {"/mnt/models": "/tmp/pods/1/models", "/tmp": "/tmp/pods/1/tmp"}
    assert Translation({}, mounts).paths("/mnt/models /tmp/x") == "/tmp/pods/1/models /tmp/pods/1/tmp/x"


@pytest.mark.parametrize("text", ["-a", "--", "port", "-port= "])
def test_long_texts_are_translated_in_a_time_that_grows_with_their_length(text):
    assert_grows_as_its_input(lambda times: Translation({8080: 1}).text(text * times), 1_000)

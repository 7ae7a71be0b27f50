import pytest
from tests.growth import assert_grows_as_its_input

from isvc.serving.podspec import fill_placeholders, merge_containers, merge_pods, tagged_image
from isvc.serving.templates import TemplateError

SERVICE = {"metadata": {"name": "iris", "namespace": "ns", "labels": {"size": "big"}, "annotations": {"who": "a+b"}}}
RUNTIME = {
    "name": "kserve-container",
    "image": "base:1",
    "args": ["--port=8080"],
    "env": [{"name": "A", "value": "1"}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
    "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "initialDelaySeconds": 3},
}


def test_arguments_follow_and_named_lists_merge():
    user = {"args": ["--x"], "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "9"}], "image": ""}
    merged = merge_containers(RUNTIME, user)
    assert merged["args"] == ["--port=8080", "--x"]
    assert merged["image"] == "base:1"
    assert merged["name"] == "kserve-container"
    assert {entry["name"]: entry.get("value") for entry in merged["env"]} == {"A": "9", "S": None, "B": "2"}
    assert RUNTIME["args"] == ["--port=8080"]


def test_a_variable_keeps_one_source_the_users():
    plain = merge_containers(RUNTIME, {"env": [{"name": "S", "value": "x"}]})
    assert {"name": "S", "value": "x"} in plain["env"]
    reference = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    assert reference in merge_containers(RUNTIME, {"env": [reference]})["env"]


def test_many_variables_take_time_in_proportion():
    """An object of a megabyte has 20,000, and whoever merges them admits for everybody."""

    def merge(number: int) -> None:
        many = [{"name": f"V{each}", "value": "x"} for each in range(number)]
        merged = merge_containers({"name": "kserve-container", "env": [*many[::-1], {"name": "A"}]}, {"env": many})
        assert merged["env"] == [*many, {"name": "A"}]

    assert_grows_as_its_input(merge, 500)


def test_a_mount_without_a_path_is_left_for_the_api_server_to_refuse():
    mounts = [{"name": "data", "mountPath": ""}]
    assert merge_containers(RUNTIME, {"volumeMounts": mounts})["volumeMounts"] == mounts


def test_zero_lays_nothing_over():
    merged = merge_containers(RUNTIME, {"readinessProbe": {"initialDelaySeconds": 0}, "command": [], "env": []})
    assert merged["readinessProbe"]["initialDelaySeconds"] == 3
    assert "command" not in merged


def test_pods_take_part_of_the_runtimes():
    runtime = {"nodeSelector": {"a": "1"}, "hostIPC": True, "tolerations": [{"key": "x"}], "containers": [RUNTIME]}
    merged = merge_pods(runtime, {"nodeSelector": {"b": "2"}, "tolerations": [{"key": "y"}], "containers": [{}]})
    assert merged == {"nodeSelector": {"a": "1", "b": "2"}, "tolerations": [{"key": "y"}]}


def test_placeholders_come_from_the_service():
    container = {"name": "c", "args": ["--m={{.Name}}", "{{.Labels.size}}{{.Labels.no}}", "{{.Annotations.who}}"]}
    assert fill_placeholders(container, SERVICE)["args"] == ["--m=iris", "big", "a&#43;b"]
    with pytest.raises(TemplateError):
        fill_placeholders({"args": ["{{.Nope}}"]}, SERVICE)


@pytest.mark.parametrize(
    ("image", "version", "server", "gpu", "expected"),
    [
        ("a/b:1", "2", "", False, "a/b:2"),
        ("a/b", "2", "", False, "a/b:2"),
        ("host:5000/b", "2", "", False, "host:5000/b:2"),
        ("a/b@sha256:0", "2", "", False, "a/b@sha256:0"),
        ("tf:1", None, "tensorflow-serving", True, "tf:1-gpu"),
        ("tf:1-gpu", None, "tensorflow-serving", True, "tf:1-gpu"),
        ("tf:1", None, "tensorflow-serving", False, "tf:1"),
        ("sk:1", None, "sklearnserver", True, "sk:1"),
        ("vllm/vllm-openai:v1", None, "vllmserver", False, "vllm/vllm-openai-cpu:v1"),
        ("vllm/vllm-openai-cpu:v1", None, "vllmserver", False, "vllm/vllm-openai-cpu:v1"),
        ("vllm/vllm-openai:v1", None, "vllmserver", True, "vllm/vllm-openai:v1"),
        ("vllm", None, "vllmserver", False, "vllm"),
    ],
)
def test_images(image, version, server, gpu, expected):
    limits = {"nvidia.com/mig-1g": "1"} if gpu else {"cpu": "1"}
    assert tagged_image({"image": image, "resources": {"limits": limits}}, version, server)["image"] == expected

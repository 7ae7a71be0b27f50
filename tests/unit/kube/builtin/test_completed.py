from isvc.kube.builtin import complete
from isvc.kube.objects import deep_copy

SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}


def test_a_manifest_is_completed_and_left_as_it_is():
    before = deep_copy(SERVICE)
    stored = complete(SERVICE)
    assert stored is not None
    assert stored["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert stored["spec"]["type"] == "ClusterIP"
    assert before == SERVICE


def test_what_cannot_be_completed_is_said_to_be_unknown():
    assert complete({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}}) is None
    assert complete({**SERVICE, "spec": {"ports": [], "newField": 1}}) is None
    assert complete({**SERVICE, "spec": {"ports": "80"}}) is None

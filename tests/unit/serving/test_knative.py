import pytest

from isvc.api.inferenceservice.components import ComponentExtensionSpec
from isvc.engine.needs import Answers, Stored
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving import knative
from isvc.serving.knative import Revision, scale_annotations
from isvc.serving.knative_settings import AUTOSCALER_CONFIG, allows_zero_initial_scale


def test_scale_settings_become_annotations_and_a_chosen_class_stays():
    given = {"autoscaling.knative.dev/class": "hpa.autoscaling.knative.dev", "mine": "yes"}
    spec = ComponentExtensionSpec(scale_target=3, scale_metric="rps", min_replicas=0, max_replicas=7)
    assert scale_annotations(spec, given) == {
        "autoscaling.knative.dev/class": "hpa.autoscaling.knative.dev",
        "autoscaling.knative.dev/target": "3",
        "autoscaling.knative.dev/metric": "rps",
        "autoscaling.knative.dev/min-scale": "0",
        "autoscaling.knative.dev/max-scale": "7",
        "mine": "yes",
    }


def test_an_unset_scale_keeps_one_replica_and_no_upper_bound():
    assert scale_annotations(ComponentExtensionSpec(), {}) == {
        "autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev",
        "autoscaling.knative.dev/min-scale": "1",
    }


@pytest.mark.parametrize(
    ("percent", "rolled_out", "expected"),
    [
        (None, "r1", [(100, None)]),
        (10, "", [(100, None)]),
        (10, "r1", [(10, None), (90, "r1")]),
        (0, "r1", [(0, None), (100, "r1")]),
        (100, "r1", [(100, None)]),
    ],
)
def test_traffic_is_split_only_when_there_is_a_revision_to_go_back_to(percent, rolled_out, expected):
    targets = knative.traffic(percent, rolled_out, tagged=False)
    assert [(t["percent"], t.get("revisionName")) for t in targets] == expected
    assert sum(share for share, _ in expected) == 100


def test_tag_routing_names_the_latest_revision():
    assert [t["tag"] for t in knative.traffic(20, "r1", tagged=True)] == ["latest", "prev"]
    assert knative.traffic(None, "", tagged=True) == [{"latestRevision": True, "percent": 100, "tag": "latest"}]


def test_annotations_about_the_service_move_up_from_the_revision():
    revision = Revision({"containers": []}, {"a": "b"}, {"serving.knative.dev/rollout-duration": "9s", "other": "1"})
    service = knative.service("x", "ns", {"a": "b"}, revision).manifest
    assert service["metadata"]["annotations"] == {"serving.knative.dev/rollout-duration": "9s"}
    assert service["spec"]["template"]["metadata"]["annotations"] == {"other": "1"}
    assert "traffic" not in service["spec"]


@pytest.mark.parametrize(
    ("value", "zero_allowed", "stays"),
    [("0", False, False), ("0", True, True), ("3", False, True), ("many", True, False), ("1.5", True, False)],
)
def test_an_initial_scale_that_knative_would_refuse_is_left_out(value, zero_allowed, stays):
    annotations = {"autoscaling.knative.dev/initial-scale": value, "other": "1"}
    kept = knative.checked_initial_scale(annotations, lambda: zero_allowed)
    assert kept == (annotations if stays else {"other": "1"})


@pytest.mark.parametrize(
    ("config", "allowed"),
    [(None, False), ({}, False), ({"data": {"allow-zero-initial-scale": "true"}}, True), ({"data": {}}, False)],
)
def test_zero_initial_scale_is_off_unless_knative_allows_it(config, allowed):
    answers = Answers({Stored(CONFIG_MAPS, AUTOSCALER_CONFIG, "knative"): config})
    assert allows_zero_initial_scale(answers, "knative") is allowed


def test_amounts_of_a_runtimes_pod_are_spelled_as_kubernetes_spells_them():
    pod = {
        "containers": [{"name": "c", "resources": {"limits": {"cpu": "0.5", "memory": "2048Mi"}}}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}}, {"name": "w", "emptyDir": {}}],
    }
    spec = knative.service("x", "ns", {}, Revision(pod, {}, {})).manifest["spec"]["template"]["spec"]
    assert spec["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "2Gi"}
    assert spec["volumes"] == [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "w", "emptyDir": {}}]


def test_what_a_pod_says_by_saying_nothing_is_left_out():
    mount = {"name": "v", "mountPath": "/v", "readOnly": False}
    cpu = {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
    probe = {"exec": {"command": ["x"]}, "initialDelaySeconds": 0, "periodSeconds": 5}
    pod = {
        "containers": [{"name": "a", "env": [cpu], "args": [], "volumeMounts": [mount], "readinessProbe": probe}],
        "tolerations": [],
        "automountServiceAccountToken": False,
    }
    spec = knative.service("x", "ns", {}, Revision(pod, {}, {})).manifest["spec"]["template"]["spec"]
    assert spec == {
        "containers": [
            {
                "name": "a",
                "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}],
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "readinessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 5},
            }
        ],
        "automountServiceAccountToken": False,
    }

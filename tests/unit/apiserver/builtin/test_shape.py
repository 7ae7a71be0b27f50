import pytest
from tests.unit.apiserver.strategies import strategy_of

from isvc.kube.errors import BadRequest
from isvc.kube.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    PODS,
    SECRETS,
    SERVICES,
    STATEFUL_SETS,
)


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [], **spec}}


def decode(resource, obj):
    unknown: list[str] = []
    return strategy_of(resource).decode(obj, unknown), unknown


def test_unknown_fields_go_and_are_told_with_their_path():
    shaped, unknown = decode(PODS, pod(containers=[{"name": "a", "image": "b", "imag": "c"}], hots=1))
    assert unknown == ["spec.containers[0].imag", "spec.hots"]
    assert "imag" not in shaped["spec"]["containers"][0]


def test_nulls_and_empty_values_go_but_zero_pointers_stay():
    shaped, _ = decode(
        DEPLOYMENTS,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "d", "labels": None, "annotations": {}, "creationTimestamp": None},
            "spec": {"replicas": 0, "minReadySeconds": 0, "paused": False, "template": {}, "selector": None},
        },
    )
    assert shaped["metadata"] == {"name": "d"}
    assert shaped["spec"]["replicas"] == 0
    assert "minReadySeconds" not in shaped["spec"]
    assert "paused" not in shaped["spec"]
    assert shaped["spec"]["selector"] is None  # always shown
    assert shaped["status"] == {}


def test_quantities_and_times_become_canonical():
    limits = {"cpu": "0.5", "memory": 1024, "x.io/y": "1000m"}
    shaped, _ = decode(PODS, pod(containers=[{"name": "a", "resources": {"limits": limits}}]))
    assert shaped["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "500m", "memory": "1024", "x.io/y": "1"}
    obj = pod()
    obj["metadata"]["deletionTimestamp"] = "2024-01-01T02:00:00+02:00"
    assert decode(PODS, obj)[0]["metadata"]["deletionTimestamp"] == "2024-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("resource", "obj", "words"),
    [
        (
            DEPLOYMENTS,
            {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": "x"}},
            'Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct'
            " field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            PODS,
            pod(containers={}),
            "cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            PODS,
            pod(containers=[{"name": 5}]),
            "cannot unmarshal number into Go struct field Container.spec.containers.name of type string",
        ),
        (CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": 1}}, "ConfigMap.data of type string"),
        (CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "data": ["a"]}, "of type map[string]string"),
        (SECRETS, {"apiVersion": "v1", "kind": "Secret", "data": {"a": "b!"}}, "illegal base64 data at input byte 1"),
        (
            PODS,
            pod(containers=[{"name": "a", "resources": {"limits": {"cpu": "much"}}}]),
            "quantities must match the regular expression",
        ),
    ],
)
def test_wrong_types_are_refused_in_gos_words(resource, obj, words):
    with pytest.raises(BadRequest) as refused:
        decode(resource, {"metadata": {"name": "x"}, **obj})
    assert words in refused.value.message


def test_defaults_of_a_service():
    shaped, _ = decode(
        SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}
    )
    assert shaped["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert shaped["spec"]["sessionAffinity"] == "None"
    assert shaped["status"] == {"loadBalancer": {}}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("reg:5000/nginx", "Always"),
        ("reg:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
    ],
)
def test_an_image_that_may_change_is_pulled_again(image, policy):
    shaped, _ = decode(PODS, pod(containers=[{"name": "a", "image": image}]))
    assert shaped["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_claim_templates_are_objects_of_their_own():
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": {}}
    spec = {"selector": {}, "template": {}, "volumeClaimTemplates": [claim]}
    obj = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec}
    shaped, unknown = decode(STATEFUL_SETS, obj)
    assert unknown == []
    assert shaped["spec"]["volumeClaimTemplates"][0]["kind"] == "PersistentVolumeClaim"
    assert decode(STATEFUL_SETS, shaped) == (shaped, [])
    _, unknown = decode(PODS, pod(kind="Pod"))
    assert unknown == ["spec.kind"]


async def test_autoscalers_convert_without_loss():
    memory = {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}
    spec = {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "maxReplicas": 3,
        "minReplicas": 1,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}},
            },
            {"type": "Resource", "resource": memory},
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}},
    }
    strategy = strategy_of(HORIZONTAL_POD_AUTOSCALERS)
    newer = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    [older] = await strategy.convert([newer], "autoscaling/v1")
    assert older["spec"]["targetCPUUtilizationPercentage"] == 60
    [again] = await strategy.convert([older], "autoscaling/v2")
    assert again["spec"] == spec
    assert again["metadata"] == {"name": "h"}

"""Whether a live object is still what its manifest made of it, without asking the API server."""

import pytest

from isvc.engine.comparison import Comparison
from isvc.engine.drift import drifted
from isvc.engine.plan import Child
from isvc.engine.policies import SHARED_WITH_AUTOSCALER, SPEC, SPEC_AND_METADATA
from isvc.kube.objects import Object, deep_copy
from isvc.kube.resource import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, SERVICES
from isvc.serving.thirdparty import HTTP_ROUTES, KNATIVE_SERVICES, OPENTELEMETRY_COLLECTORS

POD = {"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}]}]}
LIVE: Object = {
    "containers": [
        {
            "name": "c",
            "image": "i:1",
            "ports": [{"containerPort": 80, "protocol": "TCP"}],
            "imagePullPolicy": "IfNotPresent",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }
    ],
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
    "terminationGracePeriodSeconds": 30,
}
DEFAULTED = {
    "progressDeadlineSeconds": 600,
    "replicas": 1,
    "revisionHistoryLimit": 10,
    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
}
SELECTOR = {"matchLabels": {"app": "a"}}


def manifest(resource, spec):
    metadata = {"name": "a", "namespace": "ns"}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def is_drifted(resource, live, desired, policy=SPEC):
    child = Child(resource, manifest(resource, desired), policy)
    return Comparison(child, manifest(resource, live), "isvc").drifted


def pod_drifted(live, **deployment):
    template = {"metadata": {"labels": {"app": "a"}}}
    desired = {"selector": SELECTOR, "template": {**template, "spec": POD}}
    have = {"selector": SELECTOR, "template": {**template, "spec": live}, **DEFAULTED, **deployment}
    return is_drifted(DEPLOYMENTS, have, desired, SHARED_WITH_AUTOSCALER)


def test_defaults_are_no_drift():
    assert not pod_drifted(LIVE)
    assert not pod_drifted(LIVE, replicas=5)  # which the policy ignores


@pytest.mark.parametrize(
    "edit",
    [
        {"dnsPolicy": "Default"},
        {"nodeSelector": {"disk": "ssd"}},
        {"containers": [{**LIVE["containers"][0], "env": [{"name": "A", "value": "1"}]}]},
        {"containers": [*LIVE["containers"], {"name": "sidecar"}]},
        {"containers": [{**LIVE["containers"][0], "image": "other"}]},
        {"containers": [{**LIVE["containers"][0], "imagePullPolicy": "Always"}]},
        {"hostNetwork": True},
        {"restartPolicy": "ImplementationSpecific"},
        {"automountServiceAccountToken": False},
        {"shareProcessNamespace": False},
    ],
)
def test_edits_are_drift(edit):
    assert pod_drifted({**LIVE, **edit})


@pytest.mark.parametrize(
    "edit",
    [{"progressDeadlineSeconds": 601}, {"strategy": {"type": "Recreate"}}, {"minReadySeconds": 5}, {"paused": True}],
)
def test_edits_beside_the_pod_are_drift(edit):
    assert pod_drifted(LIVE, **edit)


def test_the_default_of_one_kind_is_an_edit_of_another():
    """`Exact` is what header matches default to, `PathPrefix` what paths do."""
    route = {"rules": [{"matches": [{"path": {"value": "/v1"}}], "backendRefs": [{"name": "a", "port": 80}]}]}
    live = deep_copy(route)
    live["rules"][0]["matches"][0]["path"]["type"] = "PathPrefix"
    live["rules"][0]["backendRefs"][0] |= {"group": "", "kind": "Service", "weight": 1}
    assert not is_drifted(HTTP_ROUTES, live, route)
    live["rules"][0]["matches"][0]["path"]["type"] = "Exact"
    assert is_drifted(HTTP_ROUTES, live, route)
    live["rules"][0]["matches"][0]["path"]["type"] = "PathPrefix"
    live["rules"][0]["backendRefs"][0]["kind"] = "Gateway"  # the default of a parent
    assert is_drifted(HTTP_ROUTES, live, route)


def test_a_route_without_matches_gets_one_for_every_path():
    route = {"rules": [{"backendRefs": [{"name": "a", "kind": "Service", "weight": 1}]}]}
    live = deep_copy(route)
    live["rules"][0]["matches"] = [{"path": {"type": "PathPrefix", "value": "/"}}]
    assert not is_drifted(HTTP_ROUTES, live, route)
    live["rules"][0]["matches"][0]["path"]["value"] = "/v1"
    assert is_drifted(HTTP_ROUTES, live, route)


def test_what_the_api_server_allots_is_no_drift():
    spec = {"ports": [{"port": 80}], "selector": {"app": "a"}}
    port = {"port": 80, "protocol": "TCP", "targetPort": 80}
    live: Object = {
        "clusterIP": "10.0.0.7",
        "clusterIPs": ["10.0.0.7"],
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "ports": [port],
        "selector": {"app": "a"},
        "sessionAffinity": "None",
        "type": "ClusterIP",
    }
    assert not is_drifted(SERVICES, live, spec)
    assert is_drifted(SERVICES, live, {**spec, "clusterIP": "None"})
    assert is_drifted(SERVICES, {**live, "externalIPs": ["192.0.2.7"]}, spec)
    # A port that was asked for is no node port.
    assert is_drifted(SERVICES, {**live, "ports": [{**port, "nodePort": 30001}]}, spec)


def test_an_autoscaler_compares_with_its_own_defaults():
    reference = {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}
    target = {"type": "Utilization", "averageUtilization": 80}
    spec = {"scaleTargetRef": reference, "maxReplicas": 3, "behavior": {"scaleDown": {"policies": []}}}
    percent = {"type": "Percent", "value": 100, "periodSeconds": 15}
    live: Object = {
        "scaleTargetRef": reference,
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}, percent],
            },
            "scaleDown": {"selectPolicy": "Max", "policies": [percent]},
        },
    }
    assert not is_drifted(HORIZONTAL_POD_AUTOSCALERS, live, spec, SPEC_AND_METADATA)
    live["behavior"]["scaleDown"]["stabilizationWindowSeconds"] = 0  # the default is five minutes
    assert is_drifted(HORIZONTAL_POD_AUTOSCALERS, live, spec, SPEC_AND_METADATA)


def test_kinds_of_others_have_defaults_of_their_own():
    collector = {"mode": "sidecar", "config": {"receivers": {}}}
    live = {**collector, "managementState": "managed", "replicas": 1, "configVersions": 3, "resources": {}}
    assert not is_drifted(OPENTELEMETRY_COLLECTORS, live, collector)
    assert is_drifted(OPENTELEMETRY_COLLECTORS, {**live, "configVersions": 4}, collector)
    service = {"template": {"spec": {"containers": [{"image": "i"}]}}}
    filled = {"spec": {"containers": [{"image": "i", "name": "user-container"}], "timeoutSeconds": 300}}
    assert not is_drifted(KNATIVE_SERVICES, {"template": filled}, service)
    filled["spec"]["timeoutSeconds"] = 30
    assert is_drifted(KNATIVE_SERVICES, {"template": filled}, service)


def test_a_field_that_is_not_known_here_is_compared_all_the_same():
    spec = {"selector": SELECTOR, "template": {"spec": POD}, "newInAnotherRelease": "x"}
    assert is_drifted(DEPLOYMENTS, {key: value for key, value in spec.items() if key != "newInAnotherRelease"}, spec)


def test_quantities_compare_by_value_and_zeros_by_meaning():
    assert not drifted({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1000m"}})
    assert not drifted({}, {"hostNetwork": False, "args": [], "value": ""})
    assert drifted({}, {"allowPrivilegeEscalation": False})
    assert drifted({"labels": {}}, {"labels": {"flag": ""}})
    assert drifted({"limits": {"cpu": "1", "gpu": "1"}}, {"limits": {"cpu": "1"}})

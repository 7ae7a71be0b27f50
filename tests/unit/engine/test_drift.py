import pytest

from isvc.engine.drift import drifted

POD = {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]}
LIVE = {
    "containers": [
        {
            "name": "c",
            "image": "i",
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


def test_defaults_are_no_drift():
    assert not drifted(LIVE, POD)


@pytest.mark.parametrize(
    "edit",
    [
        {"dnsPolicy": "Default"},
        {"nodeSelector": {"disk": "ssd"}},
        {"containers": [{**LIVE["containers"][0], "env": [{"name": "A", "value": "1"}]}]},
        {"containers": [*LIVE["containers"], {"name": "sidecar"}]},
        {"containers": [{**LIVE["containers"][0], "image": "other"}]},
        {"hostNetwork": True},
    ],
)
def test_edits_are_drift(edit):
    assert drifted({**LIVE, **edit}, POD)


@pytest.mark.parametrize("name", ["clusterIP", "ipFamilies"])
def test_what_is_allotted_is_no_drift(name):
    assert not drifted({"ports": [{"port": 80, name: 30000}]}, {"ports": [{"port": 80}]})


def test_quantities_compare_by_value_and_zeros_by_meaning():
    assert not drifted({"limits": {"cpu": "1"}}, {"limits": {"cpu": "1000m"}})
    assert not drifted({}, {"hostNetwork": False, "args": [], "value": ""})
    assert drifted({}, {"allowPrivilegeEscalation": False})
    assert drifted({"labels": {}}, {"labels": {"flag": ""}})
    assert drifted({"limits": {"cpu": "1", "gpu": "1"}}, {"limits": {"cpu": "1"}})


def test_a_node_port_is_an_edit_of_a_service_that_asked_for_none():
    assert drifted([{"port": 80, "nodePort": 30001}], [{"port": 80}])

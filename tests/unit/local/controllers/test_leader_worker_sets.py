"""Groups of pods of which the leader runs alone."""

from __future__ import annotations

import pytest

from isvc.local.controllers.leader_worker_sets import deployment_of, group_status

NOW = "2026-11-16T12:00:00Z"


def group(**templates):
    pod = {"metadata": {"labels": {"app": "llm"}}, "spec": {"containers": [{"name": "main", "env": [{"name": "A"}]}]}}
    return {
        "metadata": {"name": "g", "namespace": "default", "uid": "u", "generation": 2},
        "spec": {"replicas": 2, "leaderWorkerTemplate": {"workerTemplate": pod, "size": 4, **templates}},
    }


def test_leaders_are_a_deployment_that_goes_with_the_group():
    leader = {"metadata": {"labels": {"role": "leader"}}, "spec": {"containers": [{"name": "leader"}]}}
    made = deployment_of(group(leaderTemplate=leader))
    assert made["spec"]["replicas"] == 2
    pod = made["spec"]["template"]
    assert pod["metadata"]["labels"]["role"] == "leader"
    assert made["spec"]["selector"]["matchLabels"].items() <= pod["metadata"]["labels"].items()
    assert [each["name"] for each in pod["spec"]["containers"]] == ["leader"]
    assert {"name": "LWS_LEADER_ADDRESS", "value": "127.0.0.1"} in pod["spec"]["containers"][0]["env"]
    assert made["metadata"]["ownerReferences"][0]["kind"] == "LeaderWorkerSet"


def test_without_a_leader_of_their_own_workers_run():
    container = deployment_of(group())["spec"]["template"]["spec"]["containers"][0]
    assert [each["name"] for each in container["env"]][-1] == "A"


@pytest.mark.parametrize(("ready", "available"), [(1, "False"), (2, "True")])
def test_the_status_counts_leaders_and_says_that_they_are_alone(ready, available):
    status = group_status(group(), {"status": {"readyReplicas": ready, "updatedReplicas": 2}}, NOW)
    conditions = {each["type"]: each for each in status["conditions"]}
    assert conditions["Available"]["status"] == available
    assert "runs alone" in conditions["Available"]["message"]
    assert status["readyReplicas"] == ready


def test_a_settled_group_is_left_alone():
    live = group()
    live["status"] = group_status(live, {"status": {"readyReplicas": 2, "updatedReplicas": 2}}, NOW)
    later = group_status(live, {"status": {"readyReplicas": 2, "updatedReplicas": 2}}, "2026-11-16T13:00:00Z")
    assert later == live["status"]

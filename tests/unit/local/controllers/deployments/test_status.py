from __future__ import annotations

from datetime import UTC, datetime, timedelta

from isvc.local.controllers.deployments.status import deployment_status, seconds_left

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def deployment(**spec):
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    spec = {"replicas": 1, "strategy": rolling, "progressDeadlineSeconds": 600, **spec}
    return {"metadata": {"name": "d", "generation": 3}, "spec": spec}


def replica_set(name="d-new", replicas=1, ready=0, **status):
    status = {"replicas": replicas, "readyReplicas": ready, "availableReplicas": ready, **status}
    return {"metadata": {"name": name}, "spec": {"replicas": replicas}, "status": status}


def conditions(status):
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in status["conditions"]}


def test_a_rollout_from_creation_to_its_end():
    live, new = deployment(), replica_set()
    live["status"] = deployment_status(live, new, [new], True, NOW)
    assert live["status"]["unavailableReplicas"] == 1
    assert live["status"]["observedGeneration"] == 3
    assert conditions(live["status"]) == {
        "Progressing": ("True", "NewReplicaSetCreated", 'Created new replica set "d-new"'),
        "Available": ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."),
    }
    new = replica_set(ready=1)
    later = NOW + timedelta(seconds=5)
    live["status"] = deployment_status(live, new, [new], False, later)
    assert "unavailableReplicas" not in live["status"]
    assert conditions(live["status"]) == {
        "Progressing": ("True", "NewReplicaSetAvailable", 'ReplicaSet "d-new" has successfully progressed.'),
        "Available": ("True", "MinimumReplicasAvailable", "Deployment has minimum availability."),
    }
    times = {c["type"]: (c["lastTransitionTime"][-6:], c["lastUpdateTime"][-6:]) for c in live["status"]["conditions"]}
    assert times == {"Progressing": ("00:00Z", "00:05Z"), "Available": ("00:05Z", "00:05Z")}
    settled = deployment_status(live, new, [new], False, later + timedelta(hours=1))
    assert settled == live["status"]


def test_a_rollout_that_does_not_end_in_time():
    live, new = deployment(progressDeadlineSeconds=60), replica_set()
    live["status"] = deployment_status(live, new, [new], True, NOW)
    progressing = live["status"]["conditions"][0]
    assert seconds_left(live, progressing, NOW + timedelta(seconds=20)) == 40
    live["status"] = deployment_status(live, new, [new], False, NOW + timedelta(seconds=61))
    progressing = conditions(live["status"])["Progressing"]
    assert progressing == ("False", "ProgressDeadlineExceeded", 'ReplicaSet "d-new" has timed out progressing.')
    again = deployment_status(live, new, [new], False, NOW + timedelta(seconds=90))
    assert again == live["status"]


def test_pods_that_are_refused_are_told():
    refused = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "no"}
    new = replica_set(replicas=0, conditions=[refused])
    assert conditions(deployment_status(deployment(), new, [new], False, NOW))["ReplicaFailure"] == (
        "True",
        "FailedCreate",
        "no",
    )


def test_paused_and_resumed():
    status = deployment_status(deployment(paused=True), None, [], False, NOW)
    assert conditions(status)["Progressing"] == ("Unknown", "DeploymentPaused", "Deployment is paused")
    resumed = {**deployment(), "status": status}
    status = deployment_status(resumed, None, [], False, NOW)
    assert conditions(status)["Progressing"] == ("Unknown", "DeploymentResumed", "Deployment is resumed")


def test_pods_that_are_recreated_are_missed_meanwhile():
    live, new = deployment(strategy={"type": "Recreate"}), replica_set()
    status = deployment_status(live, new, [new], True, NOW)
    assert conditions(status)["Available"][:2] == ("False", "MinimumReplicasUnavailable")

from __future__ import annotations

from isvc.local.node.containers.state import ContainerState
from isvc.local.node.pods.status import phase_of, pod_status


def pod(policy="Always", **status):
    return {"metadata": {"name": "p"}, "spec": {"restartPolicy": policy}, "status": status}


def state(name="c", **changes):
    made = ContainerState(name, "image")
    if changes.get("run"):
        made.run("then", 7)
    if "code" in changes:
        made.run("then", 7)
        made.end({"exitCode": changes["code"], "reason": "Error" if changes["code"] else "Completed"})
    if changes.get("ready"):
        made.ready = made.started = True
    return made


def conditions(status):
    return {c["type"]: (c["status"], c.get("reason"), c.get("message")) for c in status["conditions"]}


def test_phases():
    waiting, running, ended, failed = state(), state(run=True), state(code=0), state(code=1)
    assert phase_of(pod(), [], [waiting]) == "Pending"
    assert phase_of(pod(), [waiting], [waiting]) == "Pending"
    assert phase_of(pod(), [ended], [running]) == "Running"
    assert phase_of(pod("Never"), [], [ended]) == "Succeeded"
    assert phase_of(pod("Never"), [], [ended, failed]) == "Failed"
    assert phase_of(pod("Never"), [failed], [waiting]) == "Failed"
    assert phase_of(pod("OnFailure"), [], [failed]) == "Running"
    assert phase_of(pod("Always"), [], [ended]) == "Running"
    failed.wait("CrashLoopBackOff")
    assert phase_of(pod(), [], [failed]) == "Running"


def test_conditions_name_who_is_not_ready():
    reported = conditions(pod_status(pod(), [state("init")], [state("a", run=True)], "s", "now"))
    assert reported["Initialized"] == ("False", "ContainersNotInitialized", "containers with incomplete status: [init]")
    assert reported["Ready"] == ("False", "ContainersNotReady", "containers with unready status: [a]")
    ready = state("a", run=True, ready=True)
    reported = conditions(pod_status(pod(), [state("init", code=0)], [ready], "s", "now"))
    assert reported["Ready"] == reported["ContainersReady"] == reported["Initialized"] == ("True", None, None)
    reported = conditions(pod_status(pod("Never"), [], [state(code=0)], "s", "now"))
    assert reported["Ready"] == ("False", "PodCompleted", None)


def test_gates_of_others_keep_a_pod_from_being_ready():
    ready = state("a", run=True, ready=True)

    def reported(*given):
        gated = pod(conditions=[{"type": kind, "status": value} for kind, value in given])
        gated["spec"]["readinessGates"] = [{"conditionType": "checked"}, {"conditionType": "known"}]
        return conditions(pod_status(gated, [], [ready], "s", "now"))

    closed = reported(("checked", "False"))
    assert closed["ContainersReady"] == ("True", None, None)
    assert closed["Ready"] == (
        "False",
        "ReadinessGatesNotReady",
        'the status of pod readiness gate "checked" is not "True", but False, '
        'corresponding condition of pod readiness gate "known" does not exist.',
    )
    assert reported(("checked", "True"), ("known", "True"))["Ready"] == ("True", None, None)


def test_times_stay_while_nothing_changes():
    ready = state("a", run=True, ready=True)
    first = pod_status(pod(), [], [ready], "s", "first")
    again = pod_status(pod(**first), [], [ready], "s", "later")
    assert again == first
    ready.ready = False
    changed = pod_status(pod(**first), [], [ready], "s", "later")
    times = {c["type"]: c["lastTransitionTime"] for c in changed["conditions"]}
    assert (times["Ready"], times["Initialized"]) == ("later", "first")


def test_a_restart_remembers_how_it_ended():
    crashed = state(code=3)
    crashed.wait("CrashLoopBackOff", "back-off 1s")
    assert crashed.to_status()["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 1s"}}
    assert crashed.to_status()["lastState"]["terminated"]["exitCode"] == 3
    crashed.run("again", 8)
    assert crashed.to_status()["containerID"] == "process://8"
    assert crashed.to_status()["lastState"]["terminated"]["exitCode"] == 3


def test_a_sidecar_holds_up_only_until_its_first_start_and_counts_as_ready_or_not():
    beside = pod("Never")
    beside["spec"]["initContainers"] = [{"name": "side", "restartPolicy": "Always"}]
    side, main = state("side"), state("c", run=True, ready=True)
    assert phase_of(beside, [side], [main]) == "Pending"
    side = state("side", run=True, ready=True)
    assert phase_of(beside, [side], [main]) == "Running"
    side.end({"exitCode": 143, "reason": "Error"})
    assert phase_of(beside, [side], [main]) == "Running"
    reported = conditions(pod_status(beside, [side], [main], "then", "now"))
    assert reported["Initialized"][0] == "True"
    assert reported["Ready"] == ("False", "ContainersNotReady", "containers with unready status: [side]")
    assert phase_of(beside, [side], [state(code=0)]) == "Succeeded"
    assert phase_of(beside, [side], [state(code=1)]) == "Failed"

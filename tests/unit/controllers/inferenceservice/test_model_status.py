import pytest

from isvc.controllers.inferenceservice import watches
from isvc.controllers.inferenceservice.status import model
from isvc.controllers.inferenceservice.status.edit import INGRESS_READY, PREDICTOR_READY, StatusEdit
from isvc.controllers.inferenceservice.status.report import update_events

NOW = "2026-01-01T00:00:00Z"


def edit(ready=False, status=None):
    made = StatusEdit(status or {}, NOW)
    if ready:
        made.conditions.mark_true(PREDICTOR_READY)
        made.conditions.mark_true(INGRESS_READY)
    return made


def pod(name="a", created=NOW, init=None, server=None, ready=False, last=None, template="1"):
    def container(title, state):
        return [{"name": title, "state": state, "lastState": {"terminated": last} if last else {}}] if state else []

    status = {
        "phase": "Running" if ready else "Pending",
        "conditions": [{"type": "Ready", "status": "True"}] if ready else [],
        "initContainerStatuses": container("storage-initializer", init),
        "containerStatuses": container("kserve-container", server),
    }
    metadata = {"name": name, "creationTimestamp": created, "labels": {"pod-template-hash": template}}
    return {"metadata": metadata, "status": status}


def after(pods, **options):
    made = edit(**options)
    model.propagate(made, pods)
    return made.fields["modelStatus"]


def test_no_pods_is_pending():
    assert after([])["states"]["targetModelState"] == "Pending"


def test_a_running_download_is_loading_and_a_repeated_one_says_nothing_new():
    assert after([pod(init={"running": {}})])["states"]["targetModelState"] == "Loading"
    before = {
        "modelStatus": {"transitionStatus": "BlockedByFailedLoad", "states": {"targetModelState": "FailedToLoad"}}
    }
    again = pod(init={"running": {}}, last={"reason": "Error"})
    assert after([again], status=before) == before["modelStatus"]


def test_failures_tell_exit_code_and_message():
    failed = {"terminated": {"reason": "Error", "exitCode": 3, "message": "no bucket"}}
    failure = {"reason": "ModelLoadFailed", "message": "no bucket", "exitCode": 3}
    assert after([pod(init=failed)])["lastFailureInfo"] == failure
    looping = {"waiting": {"reason": "CrashLoopBackOff"}}
    assert after([pod(server=looping, last=failed["terminated"])])["lastFailureInfo"] == failure
    assert after([pod(server={"waiting": {"reason": "ImagePullBackOff"}})])["states"]["targetModelState"] == "Pending"


@pytest.mark.parametrize("reason", ["CreateContainerError", "CreateContainerConfigError"])
def test_a_container_that_cannot_be_created_says_why_and_brings_its_service_back(reason: str):
    stuck = pod(server={"waiting": {"reason": reason, "message": "no space left on device"}})
    status = after([stuck])
    assert status["transitionStatus"] == "BlockedByFailedLoad"
    assert status["lastFailureInfo"] == {"reason": "ModelLoadFailed", "message": "no space left on device"}
    creating = pod(server={"waiting": {"reason": "ContainerCreating"}})
    assert watches._model_progressed(creating, stuck)
    assert not watches._model_progressed(stuck, stuck)
    assert after([creating])["states"]["targetModelState"] == "Pending"


def test_a_crash_loop_without_a_last_state_is_no_crash_of_ours():
    assert after([pod(init={"waiting": {"reason": "CrashLoopBackOff"}})], ready=True)["transitionStatus"] == "UpToDate"


def test_a_ready_service_has_loaded_its_model():
    loaded = after([pod(server={"running": {}}, ready=True)], ready=True)
    assert loaded["states"] == {"activeModelState": "Loaded", "targetModelState": "Loaded"}
    assert loaded["copies"] == {"failedCopies": 0, "totalCopies": 1}


def test_the_newest_pod_speaks():
    old, new = pod("z", "2026-01-01T00:00:00Z"), pod("a", "2026-01-02T00:00:00Z")
    twin = pod("b", "2026-01-02T00:00:00Z")
    assert [each["metadata"]["name"] for each in model.newest_first([old, twin, new])] == ["a", "b", "z"]


CRASHED = {"reason": "Error", "exitCode": 1, "message": "no such file: model.joblib"}
SERVING = {"server": {"running": {}}, "ready": True}
LATER = "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    "state", [{"terminated": CRASHED}, {"waiting": {"reason": "CrashLoopBackOff"}}, {"running": {}}]
)
def test_a_failed_update_is_reported_while_the_old_version_serves(state):
    new = pod("new", LATER, server=state, last=None if "terminated" in state else CRASHED, template="2")
    status = after([pod(**SERVING), new], ready=True)
    assert status["transitionStatus"] == "BlockedByFailedLoad"
    assert status["states"]["targetModelState"] == "FailedToLoad"
    assert status["lastFailureInfo"]["message"] == "no such file: model.joblib"


def test_an_update_that_is_under_way_or_done_is_no_failure():
    old = pod(**SERVING)
    assert (
        after([old, pod("new", LATER, server={"running": {}}, template="2")], ready=True)["transitionStatus"]
        == "UpToDate"
    )
    done = pod("new", LATER, **SERVING, last=CRASHED, template="2")
    assert after([old, done], ready=True)["transitionStatus"] == "UpToDate"


def test_a_crash_beside_others_of_the_same_version_is_no_failed_update():
    crashed = pod("new", LATER, server={"terminated": CRASHED})
    assert after([pod(**SERVING), crashed], ready=True)["transitionStatus"] == "UpToDate"


def test_a_failed_update_is_an_event_once():
    before = {"conditions": [{"type": "Ready", "status": "True"}], "modelStatus": {"transitionStatus": "UpToDate"}}
    blocked = {"transitionStatus": "BlockedByFailedLoad", "lastFailureInfo": {"message": "no bucket"}}
    failed = {**before, "modelStatus": blocked}
    (event,) = update_events("iris", before, failed)
    assert event.reason == "ModelLoadFailed"
    assert event.message.endswith("its previous version goes on serving: no bucket")
    assert list(update_events("iris", failed, failed)) == []
    unready = {**failed, "conditions": [{"type": "Ready", "status": "False"}]}
    assert list(update_events("iris", before, unready)) == []

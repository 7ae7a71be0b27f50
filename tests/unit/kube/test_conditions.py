from isvc.kube.conditions import FALSE, UNKNOWN, ConditionSet, find, is_true
from isvc.kube.objects import Object

KINDS = ConditionSet(("PredictorReady", "IngressReady"))
EARLY, LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


def found(conditions: list[Object], kind: str) -> Object:
    condition = find(conditions, kind)
    assert condition is not None
    return condition


def test_ready_once_all_dependents_are():
    edit = KINDS.edit([], EARLY)
    edit.mark_true("PredictorReady")
    assert edit.status("Ready") == UNKNOWN
    edit.mark_true("IngressReady")
    assert edit.is_happy()
    assert [c["type"] for c in edit.result()] == ["IngressReady", "PredictorReady", "Ready"]
    assert "severity" not in edit.result()[0]


def test_false_beats_unknown():
    edit = KINDS.edit([], EARLY)
    edit.mark_false("PredictorReady", "Broken", "no image")
    edit.mark_unknown("IngressReady", "Waiting")
    assert edit.get("Ready") == {
        "lastTransitionTime": EARLY,
        "message": "no image",
        "reason": "Broken",
        "status": FALSE,
        "type": "Ready",
    }


def test_information_never_counts():
    edit = KINDS.edit([], EARLY)
    edit.initialize()
    edit.mark_true("PredictorReady")
    edit.mark_true("IngressReady")
    edit.mark_false("LatestDeploymentReady", "Old")
    assert edit.is_happy()
    edit.fold()
    assert edit.is_happy()
    assert found(edit.result(), "LatestDeploymentReady")["severity"] == "Info"


def test_the_transition_time_moves_only_with_the_status():
    first = KINDS.edit([], EARLY)
    first.mark_unknown("PredictorReady", "Starting")
    before = first.result()
    second = KINDS.edit(before, LATE)
    second.mark_unknown("PredictorReady", "StillStarting")
    assert found(second.result(), "PredictorReady")["lastTransitionTime"] == EARLY
    assert found(second.result(), "PredictorReady")["reason"] == "StillStarting"
    second.mark_true("PredictorReady")
    assert found(second.result(), "PredictorReady")["lastTransitionTime"] == LATE
    assert found(before, "PredictorReady")["status"] == UNKNOWN


def test_the_latest_failure_speaks():
    edit = KINDS.edit(
        [
            {"type": "IngressReady", "status": FALSE, "reason": "Later", "lastTransitionTime": LATE},
            {"type": "PredictorReady", "status": FALSE, "reason": "Earlier", "lastTransitionTime": EARLY},
        ],
        LATE,
    )
    edit.fold()
    assert found(edit.result(), "Ready")["reason"] == "Later"
    edit.mark_false("PredictorReady", "Now")
    edit.fold()
    assert found(edit.result(), "Ready")["reason"] == "Now"


def test_clear_and_look_up():
    edit = KINDS.edit([{"type": "Stopped", "status": "True", "severity": "Info"}], EARLY)
    assert is_true(edit.result(), "Stopped")
    edit.clear("Stopped")
    assert not is_true(edit.result(), "Stopped")
    assert edit.status("Stopped") == UNKNOWN

from isvc.controllers.inferencegraph import status
from isvc.kube import conditions
from isvc.kube.conditions import is_true

EARLIER, NOW = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"


def knative(ready, url="http://g.example.com"):
    return {"status": {"url": url, "conditions": [{"type": "Ready", "status": ready}]}}


def deployment(available):
    words = {"type": "Available", "status": available, "reason": "MinimumReplicas", "message": "not enough"}
    return {"status": {"conditions": [words]}}


def find(result, kind):
    return conditions.find(result["conditions"], kind)


def test_a_ready_knative_service_gives_the_graph_its_url():
    result = status.with_knative({}, knative("True"), NOW)
    assert (result["url"], is_true(result["conditions"], "Ready")) == ("http://g.example.com", True)


def test_the_url_goes_when_the_service_fails_and_stays_while_it_says_nothing():
    ready = status.with_knative({}, knative("True"), NOW)
    assert "url" not in status.with_knative(ready, knative("False"), NOW)
    recreated = status.with_knative(ready, {"status": {}}, NOW)
    assert recreated["url"] == ready["url"]
    assert [c["type"] for c in recreated["conditions"]] == ["Stopped"]


def test_reconciling_again_changes_nothing_not_even_times():
    first = status.with_knative({}, knative("True"), EARLIER)
    assert status.with_knative(first, knative("True"), NOW) == first
    assert status.stopped(status.stopped(first, EARLIER), NOW) == status.stopped(first, EARLIER)


def test_a_deployment_that_reports_nothing_leaves_the_status_alone():
    before = {"conditions": [{"type": "Stopped", "status": "True"}]}
    assert status.with_deployment(before, {"status": {}}, "http://u", NOW) == before
    assert status.with_deployment(before, None, "http://u", NOW) == before


def test_an_unavailable_deployment_makes_the_graph_unready_and_says_why():
    available = status.with_deployment({}, deployment("True"), "http://u", EARLIER)
    assert available["url"] == "http://u"
    result = status.with_deployment(available, deployment("False"), "http://u", NOW)
    assert "url" not in result
    assert find(result, "Ready")["message"] == "not enough"
    assert find(result, "Ready")["lastTransitionTime"] == NOW
    assert find(result, "Stopped")["lastTransitionTime"] == EARLIER


def test_what_cannot_be_read_is_reported_by_its_path():
    result = status.unreadable({"url": "http://g"}, "InferenceService a: spec.predictor: expected an object", NOW)
    ready = find(result, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "InvalidSpec")
    assert "InferenceService a" in ready["message"]

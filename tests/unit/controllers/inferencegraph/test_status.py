import pytest

from isvc.api.inferencegraph import InferenceGraph, InferenceGraphSpec
from isvc.api.inferenceservice import InferenceService
from isvc.controllers.inferencegraph import status
from isvc.controllers.inferencegraph.observe import Observed
from isvc.engine.outcome import Outcome, Unchanged
from isvc.engine.plan import ChildKey, Plan, Stop
from isvc.kube import conditions
from isvc.kube.conditions import is_true
from isvc.kube.readiness import is_ready
from isvc.kube.resource import DEPLOYMENTS
from isvc.serving.config import Config

EARLIER, NOW = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"


def knative(ready, url="http://g.example.com"):
    return {"status": {"url": url, "conditions": [{"type": "Ready", "status": ready}]}}


def deployment(available):
    words = {"type": "Available", "status": available, "reason": "MinimumReplicas", "message": "not enough"}
    return {"status": {"conditions": [words]}}


def graph(before=None):
    return {"metadata": {"name": "g"}, "status": before or {}}


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
    assert status.stopped_status(status.stopped_status(first, EARLIER), NOW) == status.stopped_status(first, EARLIER)


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


MISSING = Stop("router", "Ready", "ServiceNotReady", "InferenceService leaf does not exist")


def test_a_graph_that_never_ran_says_what_it_waits_for():
    held = MISSING
    waits = status.waiting(graph(), held, EARLIER)
    assert find(waits, "Ready") | {"status": "False", "reason": held.reason, "message": held.message} == find(
        waits, "Ready"
    )
    assert all(each["reason"] and each["message"] for each in waits["conditions"])
    assert status.waiting(graph(waits), held, NOW) == waits
    resumed = status.waiting(graph(status.stopped_status({}, EARLIER)), held, NOW)
    assert (find(resumed, "Ready")["reason"], find(resumed, "Stopped")["status"]) == (held.reason, "False")


def test_a_graph_that_runs_goes_on_while_a_service_is_missing():
    for running in (
        status.with_knative({}, knative("True"), EARLIER),
        status.with_knative({}, knative("False"), EARLIER),
    ):
        assert status.waiting(graph(running), MISSING, NOW) == running


def test_a_graph_that_waits_no_longer_says_so_no_longer():
    waits = status.waiting(graph(), MISSING, EARLIER)
    assert find(status.with_deployment(waits, {"status": {}}, "http://u", NOW), "Ready") is None
    assert find(status.with_knative(waits, {"status": {}}, NOW), "Ready") is None
    assert is_true(status.with_deployment(waits, deployment("True"), "http://u", NOW)["conditions"], "Ready")


@pytest.mark.parametrize("reason", ["InvalidSpec", "InternalError"])
def test_what_was_wrong_with_the_graph_itself_is_withdrawn(reason):
    wrong = {"conditions": [{"type": "Ready", "status": "Unknown", "reason": reason, "message": "it was"}]}
    assert status.with_deployment(wrong, {"status": {}}, "http://u", NOW) == {}
    assert find(status.waiting(graph(wrong), MISSING, NOW), "Ready")["reason"] == "ServiceNotReady"


def test_a_graph_is_ready_once_its_workload_has_seen_its_last_edit():
    """The generation is the graph's own: an edit that leaves the workload as it is, is done at once."""

    def folded(edited, generation, seen):
        live = {"metadata": {"generation": generation}, "status": {**deployment("True")["status"]}}
        live["status"]["observedGeneration"] = seen
        outcome = Outcome({ChildKey(DEPLOYMENTS, "g", "ns"): Unchanged(live)}, namespace="ns")
        observed = Observed(edited, InferenceGraphSpec(), Config(), {}, {}, True, "knative-serving", now=NOW)
        return {**edited, "status": status.fold(observed, Plan(), outcome).status}

    metadata = {"name": "g", "namespace": "ns", "annotations": {"serving.kserve.io/deploymentMode": "Standard"}}
    made = folded({"metadata": {**metadata, "generation": 1}}, 1, 1)
    assert is_ready(made)
    edited = {**made, "metadata": {**metadata, "generation": 2}}
    assert not is_ready(edited)
    assert is_ready(folded(edited, 1, 1))
    rolling = folded(edited, 2, 1)
    assert not is_ready(rolling)
    assert rolling["status"] == made["status"], "nothing new is known, and nothing is written"
    assert is_ready(folded(rolling, 2, 2))


def test_a_graph_of_llms_is_looked_at_again_for_no_watch_tells_of_their_addresses():
    def again(step, annotations=None):
        raw = {"metadata": {"name": "g", "namespace": "ns", "annotations": annotations or {}}}
        spec = InferenceGraph.decode({"metadata": {}, "spec": {"nodes": {"root": {"steps": [step]}}}}).spec
        services = {"iris": InferenceService.decode({"metadata": {"name": "iris"}, "spec": {"predictor": {}}})}
        observed = Observed(raw, spec, Config(), services, {}, True, "knative-serving", now=NOW)
        return status.fold(observed, Plan(), Outcome()).again

    assert again({"serviceName": "chat"})
    assert again({"serviceName": "iris"}) is None
    assert again({"serviceUrl": "http://elsewhere"}) is None
    assert again({"serviceName": "chat"}, {"serving.kserve.io/stop": "true"}) is None

"""What the buttons of the dashboard change, and the commands that change the same."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from isvc.api.resources import INFERENCE_GRAPHS, INFERENCE_SERVICES, LLM_INFERENCE_SERVICES
from isvc.insight.operations import NotPossible, edits
from isvc.insight.operations.history import History


def service(**spec: Any) -> dict:
    return {"metadata": {"name": "iris", "namespace": "team", "uid": "1", "resourceVersion": "7"}, "spec": spec}


def typed(edit: edits.Edit) -> Any:
    """The patch in the command."""
    words = shlex.split(edit.kubectl)
    assert words[:5] == ["kubectl", "patch", "inferenceservices.serving.kserve.io", "iris", "-n"]
    return json.loads(words[-1])


@pytest.mark.parametrize(
    ("spec", "predictor"),
    [
        ({"predictor": {}}, {"minReplicas": 3}),
        ({"predictor": {"maxReplicas": 5}}, {"minReplicas": 3}),
        ({"predictor": {"maxReplicas": 2}}, {"minReplicas": 3, "maxReplicas": 3}),
    ],
)
def test_scaling_raises_the_limit_where_it_is_too_low(spec, predictor):
    edit = edits.scale(INFERENCE_SERVICES, service(**spec), 3)
    assert edit.patch == typed(edit) == {"spec": {"predictor": predictor}}


def test_an_llm_has_replicas_of_its_own():
    assert edits.scale(LLM_INFERENCE_SERVICES, service(), 0).patch == {"spec": {"replicas": 0}}


def test_the_canary_is_the_one_that_the_service_has():
    canaries = [{"trafficPercent": 10, "predictor": {"name": "trial"}}]
    edit = edits.shift_traffic(INFERENCE_SERVICES, service(canary=canaries), 25)
    assert edit.patch == typed(edit) == {"spec": {"canary": [{"trafficPercent": 25, "predictor": {"name": "trial"}}]}}
    edit = edits.shift_traffic(INFERENCE_SERVICES, service(predictor={}), 25)
    assert edit.patch == {"spec": {"predictor": {"canaryTrafficPercent": 25}}}


def test_undo_holds_only_for_the_service_that_was_read():
    earlier = {"revision": 1, "data": {"spec": {"predictor": {"minReplicas": 1}}}}
    edit = edits.undo(History(INFERENCE_SERVICES, service(predictor={"minReplicas": 2}), [earlier]))
    replace = {"op": "replace", "path": "/spec", "value": {"predictor": {"minReplicas": 1}}}
    assert edit.patch == [{"op": "test", "path": "/metadata/resourceVersion", "value": "7"}, replace]
    assert typed(edit) == [replace]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: edits.delete(INFERENCE_SERVICES, service(), ""),
        lambda: edits.delete(INFERENCE_SERVICES, service(), "Iris"),
        lambda: edits.scale(INFERENCE_SERVICES, service(), 1_000_000),
        lambda: edits.scale(INFERENCE_GRAPHS, service(), 1),
        lambda: edits.shift_traffic(INFERENCE_SERVICES, service(), 101),
        lambda: edits.shift_traffic(LLM_INFERENCE_SERVICES, service(), 10),
    ],
)
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(NotPossible):
        wrong()


def test_stop_resume_and_delete_as_kubectl_does_it():
    stop, resume = edits.stop(INFERENCE_SERVICES, service()), edits.resume(INFERENCE_SERVICES, service())
    head = "inferenceservices.serving.kserve.io iris -n team"
    assert stop.kubectl == f"kubectl annotate {head} serving.kserve.io/stop=true --overwrite"
    assert resume.kubectl == f"kubectl annotate {head} serving.kserve.io/stop-"
    assert resume.patch == {"metadata": {"annotations": {"serving.kserve.io/stop": None}}}
    deletion = edits.delete(INFERENCE_SERVICES, service(), "iris")
    assert (deletion.kubectl, deletion.patch) == (f"kubectl delete {head}", None)

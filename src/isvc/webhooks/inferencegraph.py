"""Admission of InferenceGraphs."""

from __future__ import annotations

from isvc.api.validation import Verdict
from isvc.api.validation.inferencegraph import validate_graph
from isvc.toolkit.webhook import AdmissionRequest
from isvc.webhooks.answers import Handler, validator


def graph_validator() -> Handler:
    def judge(request: AdmissionRequest) -> Verdict:
        return validate_graph(request.object, request.old_object or None)

    return validator(judge)

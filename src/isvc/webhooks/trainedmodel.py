"""Admission of TrainedModels."""

from __future__ import annotations

from isvc.api.validation import Verdict
from isvc.api.validation.trainedmodel import validate_trained_model
from isvc.toolkit.webhook import AdmissionRequest
from isvc.webhooks.answers import Handler, validator


def trained_model_validator() -> Handler:
    def judge(request: AdmissionRequest) -> Verdict:
        return validate_trained_model(request.object, request.old_object or None)

    return validator(judge)

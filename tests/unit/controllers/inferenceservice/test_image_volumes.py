import json
from dataclasses import replace

import pytest

from isvc.api import InferenceService
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.controllers.inferenceservice.status.fold import fold_status
from isvc.engine.outcome import Outcome
from isvc.kube.conditions import find
from isvc.serving.config import Config
from isvc.serving.storage.image_volumes import CONDITION

RAW = {"metadata": {"name": "iris", "namespace": "ns"}, "spec": {"predictor": {}}}


def reason(minor, mode="native"):
    config = Config.parse(
        {
            "storageInitializer": json.dumps({"ociModelMode": mode}),
            "deploy": json.dumps({"defaultDeploymentMode": "Standard"}),
        }
    )
    version = ("1", minor)
    observed = Observed(RAW, InferenceService.decode(RAW), config, server_version=version, now="2026-01-01T00:00:00Z")
    status = fold_status(observed, plan(observed), Outcome())
    again = replace(observed, raw={**RAW, "status": status})
    assert fold_status(again, plan(again), Outcome()) == status
    condition = find(status["conditions"], CONDITION)
    assert condition is None or condition["severity"] == "Info"
    return condition and condition["reason"]


@pytest.mark.parametrize(
    ("minor", "expected"),
    [
        ("30", "ImageVolumeUnsupported"),
        ("32+", "ImageVolumeSubPathUnsupported"),
        ("34", "ImageVolumeAlpha"),
        ("35", None),
        ("odd", None),
    ],
)
def test_old_versions_are_warned_about(minor, expected):
    assert reason(minor) == expected


def test_other_ways_to_bring_images_do_not_matter():
    assert reason("30", "modelcar") is None

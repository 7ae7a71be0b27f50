import json

import pytest

from isvc.api import InferenceService
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.status import image_volumes
from isvc.controllers.inferenceservice.status.edit import StatusEdit
from isvc.serving.config import Config
from isvc.serving.storage.image_volumes import CONDITION

RAW = {"metadata": {"name": "iris", "namespace": "ns"}, "spec": {"predictor": {}}}


def reason(minor, mode="native"):
    config = Config.parse({"storageInitializer": json.dumps({"ociModelMode": mode})})
    observed = Observed(RAW, InferenceService.decode(RAW), config, server_version=("1", minor))
    edit = StatusEdit({}, "2026-01-01T00:00:00Z")
    image_volumes.report(edit, observed)
    before = edit.result()
    image_volumes.report(edit, observed)
    assert edit.result() == before
    condition = edit.conditions.get(CONDITION)
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

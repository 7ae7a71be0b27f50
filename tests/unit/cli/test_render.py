"""`isvc render` as people and pipelines run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from isvc.cli import main

EXAMPLES = Path(__file__).parents[3] / "examples"
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: NAME}
spec: {predictor: {model: {modelFormat: {name: sklearn}, storageUri: "gs://bucket/model"}}}
"""


def render(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, ["render", *arguments], input=stdin)


def test_standard_input_becomes_documents() -> None:
    result = render("-f", "-", stdin=SERVICE.replace("NAME", "one") + "---" + SERVICE.replace("NAME", "two"))
    assert result.exit_code == 0
    names = {obj["metadata"]["name"] for obj in yaml.safe_load_all(result.stdout)}
    assert {"one-predictor", "two-predictor"} <= names
    assert result.stderr.startswith("Warning: no configuration is given: that of `isvc up` is assumed\n")


def test_a_locale_without_unicode_is_no_obstacle() -> None:
    words = [sys.executable, "-m", "isvc", "render", "-f", "-"]
    text = SERVICE.replace("NAME", "one").replace("bucket/model", "bucket/模型")
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(words, input=text.encode(), env=env, capture_output=True, check=True)
    assert rb"gs://bucket/\u6a21\u578b" in done.stdout


def test_what_is_printed_can_be_read_and_is_the_same_every_time() -> None:
    arguments = ("-f", str(EXAMPLES / "iris.yaml"), "--pods", "--as-stored", "-o", "json")
    first, second = render(*arguments), render(*arguments)
    assert {item["kind"] for item in json.loads(first.stdout)["items"]} >= {"Deployment", "Service", "Pod"}
    assert first.stdout == second.stdout


def test_a_refused_document_ends_with_1_and_the_others_are_printed() -> None:
    text = SERVICE.replace("NAME", "Wrong") + "---" + SERVICE.replace("NAME", "right")
    result = render("-f", "-", "-o", "name", stdin=text)
    assert result.exit_code == 1
    assert "deployment.apps/right-predictor" in result.stdout
    assert "Error: -:2: InferenceService Wrong: " in result.stderr


@pytest.mark.parametrize("text", ["a: [", "kind: Service", "\t"])
def test_what_cannot_be_read_ends_with_2(text: str) -> None:
    result = render("-f", "-", stdin=text)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("Error: -")
    assert result.stderr.count("\n") == 1


def test_another_mode() -> None:
    result = render("-f", str(EXAMPLES / "iris.yaml"), "--mode", "Knative", "-o", "name")
    assert "service.serving.knative.dev/iris-predictor" in result.stdout

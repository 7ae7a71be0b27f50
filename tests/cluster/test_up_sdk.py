"""KServe's own Python SDK, unmodified and in an environment of its own (`make test-sdk`)."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from tests.cluster.local_machine import machine, needs_embedded, service

SDK = os.environ.get("ISVC_SDK_PYTHON", "")
pytestmark = pytest.mark.skipif(not SDK, reason="needs the kserve package: make test-sdk")

PROGRAM = """
import asyncio, json, os, sys
from kubernetes.client import V1ObjectMeta
from kserve import (InferenceRESTClient, KServeClient, RESTConfig, V1beta1InferenceService, V1beta1InferenceServiceSpec,
                    V1beta1ModelFormat, V1beta1ModelSpec, V1beta1PredictorSpec)

model = V1beta1ModelSpec(model_format=V1beta1ModelFormat(name="sklearn"), storage_uri="pvc://models/iris")
service = V1beta1InferenceService(
    api_version="serving.kserve.io/v1beta1",
    kind="InferenceService",
    metadata=V1ObjectMeta(name="sdk", namespace="default"),
    spec=V1beta1InferenceServiceSpec(predictor=V1beta1PredictorSpec(model=model)),
)
client = KServeClient(config_file=os.environ["KUBECONFIG"])
client.create(service)
client.wait_isvc_ready("sdk", namespace="default", timeout_seconds=120)
url = client.get("sdk", namespace="default")["status"]["url"]


async def predict():
    rest = InferenceRESTClient(RESTConfig(protocol="v1"))
    rows = {"instances": [[5.1, 3.5, 1.4, 0.2], [6.3, 3.3, 6.0, 2.5]]}
    return await rest.infer(url, rows, model_name="sdk")


print("ANSWER " + json.dumps(asyncio.run(predict())))
client.delete("sdk", namespace="default")
"""


def test_the_sdk_creates_waits_and_predicts(request, tmp_path):
    from isvc.local.examples import train

    needs_embedded(request)
    train(tmp_path / "models")
    here = machine(tmp_path, tmp_path / "models")
    try:
        here.start()
        done = subprocess.run([SDK, "-c", PROGRAM], env=here.env, capture_output=True, text=True, timeout=300)
        answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
        assert answers, done.stdout + done.stderr
        assert json.loads(answers[0].removeprefix("ANSWER ")) == {"predictions": [0, 2]}
    finally:
        here.stop()


TRANSFORMER = """
import argparse
from kserve import Model, ModelServer, model_server
from kserve.predictor_config import PredictorConfig

class Halver(Model):
    async def preprocess(self, payload, headers=None):
        return {"instances": [[value / 2 for value in row] for row in payload["instances"]]}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[model_server.parser])
    args, _ = parser.parse_known_args()
    model = Halver(args.model_name)
    model.load()
    ModelServer(predictor_config=PredictorConfig(args.predictor_host), enable_grpc=False).start([model])
"""


def test_a_transformer_written_for_kserve_runs_as_it_is(request, tmp_path):
    from isvc.local.examples import train

    needs_embedded(request)
    train(tmp_path / "models")
    (tmp_path / "transformer.py").write_text(TRANSFORMER)
    here = machine(tmp_path, tmp_path / "models")
    command = [SDK, str(tmp_path / "transformer.py"), "--http_port", "{port}"]
    (here.home / "images.yaml").write_text(json.dumps({"images": {"example.com/halver": {"command": command}}}))
    both = service("halved", "pvc://models/iris")
    container = {"name": "kserve-container", "image": "example.com/halver", "args": ["--model_name=halved"]}
    both["spec"]["transformer"] = {"containers": [container]}
    try:
        here.start()
        here.apply(both)
        here.wait_ready("halved")
        rows = json.dumps({"instances": [[10.2, 7.0, 2.8, 0.4], [12.6, 6.6, 12.0, 5.0]]})
        assert here.predict("halved", rows) == {"predictions": [0, 2]}
    finally:
        here.stop()

"""Runs KServe's own end-to-end tests against `isvc up`: `python tools/kserve_e2e CHECKOUT PYTHON [PYTEST ARGUMENTS]`.

CHECKOUT is one of KServe's repository, PYTHON the interpreter of an environment with its SDK. The tests are copied, and
what they name in KServe's bucket lies in a folder instead, with models that are trained here. Nothing is downloaded.
The variable TORCH names a Python with which transformers and TorchServe run (see `torchserve.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from models import train
from s3 import s3, store_credentials

_BUCKET = "gs://kfserving-examples/"
_NAMESPACE = "kserve-ci-e2e-test"
_READY_SECONDS = 180.0
_TRANSFORMER = "kserve/image-transformer"
_PATIENCE = "DEFAULT_RETRY_BACKOFF_FACTOR = 2.0"  # eight minutes in all, also for answers that a test expects
#: Tests whose servers have no local program, for which they would wait for ten minutes each, or another answer than
#: KServe's (PMML).
_WITHOUT_PROGRAM = (
    "custom/test_custom_model_grpc.py", "custom/test_ray.py", "predictor/test_autogluon.py",
    "predictor/test_autogluon_timeseries.py", "predictor/test_canary.py", "predictor/test_grpc.py",
    "predictor/test_paddle.py", "predictor/test_pmml.py", "predictor/test_tensorflow.py",
    "predictor/test_torchserve.py", "predictor/test_triton.py", "storage/test_oci_modelcar.py",
)  # fmt: skip


def copy_tests(checkout: Path, target: Path, bucket: Path) -> None:
    """The tests, with URIs that lead to a folder in the place of the bucket, and a client that is less patient."""
    shutil.copytree(checkout / "test" / "e2e", target)
    for path in target.rglob("*.py"):
        text = path.read_text()
        changed = text.replace(_BUCKET, f"file://{bucket}/").replace(_PATIENCE, _PATIENCE.replace("2.0", "0.05"))
        if changed != text:
            path.write_text(changed)


def write_images(path: Path, checkout: Path, python: str) -> None:
    """Programs for the images of the tests: servers of KServe's own."""
    servers = checkout / "python"
    graph = servers / "test_resources" / "graph"
    explainer = {"PYTHONPATH": str(servers / "artexplainer")}
    images: dict[str, dict[str, Any]] = {
        "kserve/art-explainer": {"command": [python, "-m", "artserver"], "env": explainer},
        "kserve/success-200-isvc": {"command": [python, str(graph / "success_200_isvc" / "model.py")]},
        "kserve/error-404-isvc": {"command": [python, str(graph / "error_404_isvc" / "model.py")]},
    }
    if torch := os.environ.get("TORCH"):
        serve = [torch, str(Path(__file__).with_name("torchserve.py").resolve()), "serve", "{port:8085}"]
        store = ["--model-store=/mnt/models/model-store", "--ts-config=/mnt/models/config/config.properties"]
        images["pytorch/torchserve"] = {"command": serve}
        images["isvc/torchscriptserver"] = {
            "command": [*serve, "{port:8080}", *store],
            "env": {"TS_SERVICE_ENVELOPE": "kserve"},
        }
        images[_TRANSFORMER] = {"command": [torch, str(servers / "custom_transformer" / "model.py")]}
    path.write_text(json.dumps({"images": images}))


@contextlib.contextmanager
def isvc_up(home: Path) -> Iterator[dict[str, str]]:
    """Yields the environment in which its clients find it."""
    environment = {**os.environ, "ISVC_HOME": str(home), "KUBECONFIG": str(home / "kubeconfig")}
    isvc = Path(sys.executable).with_name("isvc")
    with (home / "up.log").open("wb") as log:
        command = [isvc, "up", "--port", "0", "--api-port", "0", "--ephemeral"]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + _READY_SECONDS
        while "ready in" not in (home / "up.log").read_text():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit((home / "up.log").read_text())
            time.sleep(0.1)
        gateway = json.loads((home / "run" / "up.json").read_text())["gateway"]
        yield {**environment, "KSERVE_INGRESS_HOST_PORT": gateway.removeprefix("http://")}
    finally:
        process.terminate()
        process.wait()


def configure(environment: dict[str, str]) -> None:
    """As KServe's own runs have it: Knative unless a service says otherwise, and a host for each service."""
    words = ["configmap", "inferenceservice-config", "--namespace", "kserve"]
    read = ["kubectl", "get", *words, "--output", "json"]
    data = json.loads(subprocess.run(read, env=environment, check=True, capture_output=True).stdout)["data"]
    deploy, ingress = json.loads(data["deploy"]), json.loads(data["ingress"])
    del ingress["pathTemplate"]
    changed = {
        "deploy": json.dumps({**deploy, "defaultDeploymentMode": "Knative"}),
        "ingress": json.dumps({**ingress, "pathBasedURL": False}),
    }
    patch = json.dumps({"data": changed})
    subprocess.run(["kubectl", "patch", *words, "--patch", patch], env=environment, check=True)
    subprocess.run(["kubectl", "create", "namespace", _NAMESPACE], env=environment, check=True)


def main(checkout: str, python: str, *arguments: str) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that nothing is left behind
    without = [f"--ignore={each}" for each in _WITHOUT_PROGRAM if each not in arguments]
    with tempfile.TemporaryDirectory(prefix="kserve-e2e-") as folder:
        home, tests, bucket = Path(folder) / "home", Path(folder) / "test" / "e2e", Path(folder) / "bucket"
        home.mkdir()
        copy_tests(Path(checkout), tests, bucket)
        write_images(home / "images.yaml", Path(checkout).resolve(), python)
        train(bucket / "models", tests / "data")
        if torch := os.environ.get("TORCH"):
            archive = [torch, Path(__file__).with_name("torchserve.py"), "archive"]
            subprocess.run([*archive, bucket / "models/torchserve/image_classifier/v1"], check=True)
        with s3(bucket / "models/sklearn/1.0/model") as address, isvc_up(home) as environment:
            configure(environment)
            store_credentials(address, _NAMESPACE, environment)
            command = [python, "-m", "pytest", "-o", "log_cli=false", *without, *arguments]
            environment |= {"S3_ENDPOINT": address, "IMAGE_TRANSFORMER_IMG_TAG": _TRANSFORMER}
            return subprocess.run(command, cwd=tests, env=environment, check=False).returncode


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))

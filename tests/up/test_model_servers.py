"""Formats, explainers and users' own servers on `isvc up`: what runs beside the model servers of the other suites."""

from __future__ import annotations

import json
import pickle
import zipfile
from pathlib import Path

from tests.up.machine import EXAMPLES, Machine, service, until

from isvc.kube.objects import Object

INPUT = (EXAMPLES / "iris-input.json").read_text()
SERVER = """
import http.server, os, tiny_answers

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        body = tiny_answers.ANSWER.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""


def of_format(name: str, model_format: str, uri: str) -> Object:
    wanted = service(name, uri)
    wanted["spec"]["predictor"]["model"] |= {"modelFormat": {"name": model_format}}
    return wanted


def test_an_explainer_beside_a_model(here: Machine) -> None:
    here.apply(here.example("iris-explainer.yaml"))
    here.wait_ready("iris-explained")
    assert here.predict("iris-explained", INPUT) == {"predictions": [0, 1, 2]}
    url = here.get("isvc", "iris-explained")["status"]["url"]
    answer = here.run("curl", "-sS", f"{url}/v1/models/iris-explained:explain", "-d", INPUT)
    explanations = json.loads(answer)["explanations"]
    assert [each["prediction"] for each in explanations] == [0, 1, 2]
    for each in explanations:
        assert each["importance"]["petal length"] > each["importance"]["sepal width"]
    here.kubectl("delete", "-f", "examples/iris-explainer.yaml")


def test_models_of_onnx_and_mlflow(here: Machine) -> None:
    import numpy
    from skl2onnx import to_onnx
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    classifier = LogisticRegression(max_iter=500).fit(*load_iris(return_X_y=True))
    claim = here.claim
    (claim / "onnx").mkdir()
    onnx = to_onnx(classifier, numpy.zeros((1, 4), numpy.float32)).SerializeToString()
    (claim / "onnx" / "model.onnx").write_bytes(onnx)
    (claim / "mlflow").mkdir()
    (claim / "mlflow" / "model.pkl").write_bytes(pickle.dumps(classifier))
    (claim / "mlflow" / "MLmodel").write_text("flavors: {sklearn: {pickled_model: model.pkl}}")
    here.apply(of_format("iris-onnx", "onnx", "pvc://models/onnx"))
    here.apply(of_format("iris-mlflow", "mlflow", "pvc://models/mlflow"))
    for name in ("iris-onnx", "iris-mlflow"):
        here.wait_ready(name)
        assert here.predict(name, INPUT) == {"predictions": [0, 1, 2]}
        here.kubectl("delete", "isvc", name)


def wheel(folder: Path) -> Path:
    """A package of one module, as pip installs it."""
    path = folder / "tiny_answers-1.0-py3-none-any.whl"
    metadata = {"METADATA": "Metadata-Version: 2.1\nName: tiny-answers\nVersion: 1.0\n"}
    metadata["WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny_answers.py", "ANSWER = '{\"predictions\": [42]}'\n")
        for name, text in metadata.items():
            archive.writestr(f"tiny_answers-1.0.dist-info/{name}", text)
        archive.writestr("tiny_answers-1.0.dist-info/RECORD", "")
    return path


def test_a_server_in_an_environment_of_its_own(here: Machine, tmp_path: Path) -> None:
    requirements, program = tmp_path / "requirements.txt", tmp_path / "server.py"
    requirements.write_text(f"{wheel(tmp_path)}\n")
    program.write_text(SERVER)
    made = here.isvc("runtime", "add", "tiny", "-r", str(requirements), "--image", "example.com/me/tiny", "--",
                     "python", str(program))  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert "example.com/me/tiny" in here.isvc("runtime", "list").stdout
    wanted = service("tiny", "")
    wanted["spec"]["predictor"] = {"containers": [{"name": "kserve-container", "image": "example.com/me/tiny:1"}]}
    here.apply(wanted)
    here.wait_ready("tiny")
    assert here.predict("tiny", "{}") == {"predictions": [42]}
    here.kubectl("delete", "isvc", "tiny")
    assert here.isvc("runtime", "remove", "tiny").returncode == 0
    assert not (here.home / "runtimes" / "tiny").exists()


def test_a_framework_of_isvcs_own_server_in_an_environment_beside_it(here: Machine, tmp_path: Path) -> None:
    """The environment has isvc, whose server says what is missing from it: the file brought another package."""
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"{wheel(tmp_path)}\n")
    made = here.isvc("runtime", "add", "pytorch", "-r", str(requirements))
    assert made.returncode == 0, made.stderr
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.pt").touch()
    wanted = service("net", f"file://{model}")
    wanted["spec"]["predictor"]["model"]["modelFormat"]["name"] = "pytorch"
    here.apply(wanted)
    told = "model.pt needs the Python package torch (isvc runtime add pytorch)"
    until(lambda: told in here.isvc("status").stdout, "the status to say what to run")
    here.kubectl("delete", "isvc", "net")
    assert here.isvc("runtime", "remove", "pytorch").returncode == 0


def test_what_cannot_be_installed_is_told_and_leaves_nothing(here: Machine, tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"{tmp_path}/gone-1.0-py3-none-any.whl\n")
    refused = here.isvc("runtime", "add", "broken", "-r", str(requirements))
    assert refused.returncode == 1
    assert "gone" in refused.stderr
    assert not (here.home / "runtimes" / "broken").exists()
    assert "no name for a runtime" in here.isvc("runtime", "add", "../up", "-r", str(requirements)).stderr
    assert "the packages are missing" in here.isvc("runtime", "add", "broken").stderr
    assert "there is no runtime broken" in here.isvc("runtime", "remove", "broken").stderr

"""Models in ONNX and PMML and those that MLflow has saved, each made here, over real HTTP."""

from __future__ import annotations

import pickle
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio
from aiohttp.test_utils import TestClient, TestServer

from isvc.pods.modelserver import Model, mlserver
from isvc.pods.modelserver.app import Server
from isvc.pods.modelserver.errors import ModelFileError
from isvc.pods.modelserver.mlflow_model import MLflowModel
from isvc.pods.modelserver.onnx_model import OnnxModel
from isvc.pods.modelserver.pmml_model import PmmlModel
from isvc.pods.modelserver.torch_model import TorchScriptModel

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

ROWS = [[5.1, 3.5, 1.4, 0.2], [6.0, 2.9, 4.5, 1.5], [6.3, 3.3, 6.0, 2.5]]
TENSOR = {"name": "x", "shape": [3, 4], "datatype": "FP64", "data": ROWS}

PMML = """<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4"><Header/>
<DataDictionary>
  {}
  <DataField name="width" optype="continuous" dataType="double"/>
  <DataField name="height" optype="continuous" dataType="double"/>
</DataDictionary>
{}
</PMML>"""
KIND = """<DataField name="kind" optype="categorical" dataType="string">
<Value value="small"/><Value value="large"/></DataField>"""
SCHEMA = '<MiningSchema><MiningField name="{}" usageType="target"/>{}</MiningSchema>'
TREE = """<TreeModel functionName="classification" splitCharacteristic="binarySplit">{}
<Output>
  <OutputField name="Probability_large" feature="probability" value="large"/>
  <OutputField name="Kind" feature="predictedValue"/>
  <OutputField name="Node" feature="entityId"/>
</Output>
<Node id="1" score="small" recordCount="4"><True/>
  <ScoreDistribution value="small" recordCount="2"/><ScoreDistribution value="large" recordCount="2"/>
  <Node id="2" score="small" recordCount="3">
    <SimplePredicate field="width" operator="lessOrEqual" value="5"/>
    <ScoreDistribution value="small" recordCount="3"/><ScoreDistribution value="large" recordCount="1"/></Node>
  <Node id="3" score="large" recordCount="1">
    <SimplePredicate field="width" operator="greaterThan" value="5"/>
    <ScoreDistribution value="small" recordCount="0"/><ScoreDistribution value="large" recordCount="1"/></Node>
</Node></TreeModel>""".format(SCHEMA.format("kind", '<MiningField name="width"/><MiningField name="height"/>'))
LINE = """<RegressionModel functionName="regression">{}
<RegressionTable intercept="1"><NumericPredictor name="width" coefficient="2"/></RegressionTable>
</RegressionModel>""".format(SCHEMA.format("height", '<MiningField name="width"/>'))

Serve = Callable[[Model], Awaitable[Any]]


@pytest.fixture(scope="module")
def classifier() -> LogisticRegression:
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=500).fit(*load_iris(return_X_y=True))


@pytest.fixture
def onnx(classifier: LogisticRegression, tmp_path: Path) -> Path:
    import numpy
    from skl2onnx import to_onnx

    rows = numpy.zeros((1, 4), numpy.float32)
    proto = to_onnx(classifier, rows, options={"zipmap": False})
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())
    return tmp_path


@pytest_asyncio.fixture
async def serve() -> AsyncIterator[Serve]:
    clients = []

    async def start(model: Model) -> Any:
        model.load()
        clients.append(TestClient(TestServer(Server([model]).application())))
        await clients[-1].start_server()
        return clients[-1]

    yield start
    for client in clients:
        await client.close()


def mlflow(folder: Path, flavour: str) -> MLflowModel:
    (folder / "MLmodel").write_text(f"flavors:\n  python_function: {{loader_module: x}}\n  {flavour}\n")
    return MLflowModel("iris", str(folder))


async def post(client: Any, path: str, body: dict[str, Any]) -> Any:
    response = await client.post(path, json=body)
    return response.status, await response.json()


async def test_onnx_answers_in_both_protocols_and_describes_itself(onnx: Path, serve: Serve) -> None:
    client = await serve(OnnxModel("iris", str(onnx)))
    assert await post(client, "/v1/models/iris:predict", {"instances": ROWS}) == (200, {"predictions": [0, 1, 2]})
    _, answer = await post(client, "/v2/models/iris/infer", {"inputs": [TENSOR]})
    outputs = {each["name"]: each for each in answer["outputs"]}
    assert outputs["label"]["data"] == [0, 1, 2]
    assert (outputs["probabilities"]["shape"], outputs["probabilities"]["datatype"]) == ([3, 3], "FP32")
    described = await (await client.get("/v2/models/iris")).json()
    assert described["inputs"] == [{"name": "X", "datatype": "FP32", "shape": [-1, 4]}]


async def test_a_tensor_of_the_wrong_shape_is_the_clients_fault_or_the_models(onnx: Path, serve: Serve) -> None:
    client = await serve(OnnxModel("iris", str(onnx)))
    status, answer = await post(client, "/v1/models/iris:predict", {"instances": [[1.0, 2.0]]})
    assert status >= 400
    assert "X" in answer["error"]
    two = {"inputs": [TENSOR, {**TENSOR, "name": "y"}]}
    status, answer = await post(client, "/v2/models/iris/infer", two)
    assert (status, "the model takes X" in answer["error"]) == (400, True)


@pytest.fixture
def pmml(tmp_path: Path) -> Callable[[str], PmmlModel]:
    def write(model: str) -> PmmlModel:
        (tmp_path / "model.pmml").write_text(PMML.format(KIND if model is TREE else "", model))
        return PmmlModel("size", str(tmp_path))

    return write


async def test_pmml_answers_with_the_outputs_that_it_declares(pmml: Callable[[str], PmmlModel], serve: Serve) -> None:
    client, path = await serve(pmml(TREE)), "/v1/models/size:predict"
    expected = [
        {"kind": "small", "Probability_large": 0.25, "Kind": "small"},
        {"kind": "large", "Probability_large": 1.0, "Kind": "large"},
    ]
    assert await post(client, path, {"instances": [[3, 1], [7, 1]]}) == (200, {"predictions": expected})
    named = {"instances": [{"height": 1, "width": 7}]}
    assert await post(client, path, named) == (200, {"predictions": expected[1:]})
    status, answer = await post(client, path, {"instances": [[3]]})
    assert (status, answer["error"]) == (400, "a row has 2 values: width, height")
    tensor = {"name": "rows", "shape": [2, 2], "datatype": "FP32", "data": [3, 1, 7, 1]}
    _, answer = await post(client, "/v2/models/size/infer", {"inputs": [tensor]})
    outputs = {each["name"]: each["data"] for each in answer["outputs"]}
    assert outputs == {"kind": ["small", "large"], "Probability_large": [0.25, 1.0], "Kind": ["small", "large"]}


async def test_a_regression_in_pmml(pmml: Callable[[str], PmmlModel], serve: Serve) -> None:
    client = await serve(pmml(LINE))
    _, answer = await post(client, "/v1/models/size:predict", {"instances": [[3], [5]]})
    assert answer == {"predictions": [{"height": 7.0}, {"height": 11.0}]}


def test_pmml_of_an_unknown_kind_is_told(pmml: Callable[[str], PmmlModel]) -> None:
    with pytest.raises(ModelFileError, match=r"model\.pmml has no model that sklearn-pmml-model can run"):
        pmml('<AssociationModel functionName="associationRules"/>').load()


def test_without_pytorch_a_model_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "model.pt").touch()
    with pytest.raises(ModelFileError, match=r"model\.pt needs the Python package torch \(isvc runtime add pytorch\)"):
        TorchScriptModel("net", str(tmp_path)).load()


def test_an_archive_of_torchserve_is_told(tmp_path: Path) -> None:
    (tmp_path / "model-store").mkdir()
    (tmp_path / "model-store" / "mnist.mar").touch()
    with pytest.raises(ModelFileError, match="needs TorchServe, which cannot run here"):
        TorchScriptModel("net", str(tmp_path)).load()


async def test_a_scikit_learn_model_of_mlflow(classifier: LogisticRegression, tmp_path: Path, serve: Serve) -> None:
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(classifier))
    client = await serve(mlflow(tmp_path, "sklearn: {pickled_model: model.pkl, sklearn_version: 1.0.0}"))
    assert (await post(client, "/v1/models/iris:predict", {"instances": ROWS}))[1] == {"predictions": [0, 1, 2]}
    columns = [
        {"name": f"c{index}", "shape": [3], "datatype": "FP64", "data": [row[index] for row in ROWS]}
        for index in range(4)
    ]
    _, answer = await post(client, "/v2/models/iris/infer", {"inputs": columns, "parameters": {"content_type": "pd"}})
    assert answer["outputs"][0]["data"] == [0, 1, 2]


async def test_an_onnx_model_of_mlflow_in_a_folder_of_its_own(onnx: Path, serve: Serve) -> None:
    inner = onnx / "artifact"
    inner.mkdir()
    (onnx / "model.onnx").rename(inner / "model.onnx")
    mlflow(inner, "onnx: {data: model.onnx}")
    client = await serve(MLflowModel("iris", str(onnx)))
    assert (await post(client, "/v1/models/iris:predict", {"instances": ROWS}))[1] == {"predictions": [0, 1, 2]}


@pytest.mark.parametrize(
    ("flavour", "words"),
    [
        ("keras: {data: x}", "flavours python_function, keras"),
        ("sklearn: {pickled_model: gone.pkl}", "names no file"),
        ("sklearn: {pickled_model: ../../etc/passwd}", "names no file"),
        ("sklearn: {}", "names no file"),
        ("]", "cannot be read"),
    ],
)
def test_what_mlflow_left_and_cannot_be_served_is_told(tmp_path: Path, flavour: str, words: str) -> None:
    with pytest.raises(ModelFileError, match=words):
        mlflow(tmp_path, flavour).load()


def test_without_a_description_there_is_no_model_of_mlflow(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="no file MLmodel"):
        MLflowModel("iris", str(tmp_path)).load()


def test_the_settings_of_mlserver_are_flags() -> None:
    environ = {
        "MLSERVER_MODEL_IMPLEMENTATION": "mlserver_xgboost.XGBoostModel",
        "MLSERVER_MODEL_NAME": "iris",
        "MLSERVER_MODEL_URI": "/mnt/models",
        "MLSERVER_HTTP_PORT": "20001",
        "MLSERVER_GRPC_PORT": "20002",
    }
    expected = {"framework": "xgboost", "model_name": "iris", "model_dir": "/mnt/models", "http_port": 20001}
    assert mlserver.defaults(environ) == expected
    declared = {**environ, "ISVC_PORTS": '{"8081": 20002}'}
    assert mlserver.defaults(declared) == {**expected, "grpc_port": 20002}
    assert mlserver.defaults({}) == {}

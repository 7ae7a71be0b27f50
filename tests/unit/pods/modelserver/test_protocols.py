"""The v1 and v2 protocols over real HTTP, with models of all three libraries."""

from __future__ import annotations

import asyncio
import gzip
import json
import struct

import pytest
import pytest_asyncio
from aiohttp.test_utils import TestClient, TestServer
from tests.growth import assert_grows_as_its_input

from isvc.pods.modelserver import InferRequest, InferResponse, Model
from isvc.pods.modelserver.app import Server
from isvc.pods.modelserver.errors import InvalidInput, ModelFileError
from isvc.pods.modelserver.frameworks import LightGBMModel, SklearnModel, XGBoostModel, rows_of
from isvc.pods.modelserver.predictor import Predictor
from isvc.pods.modelserver.tensors import BINARY_HEADER, decode_request

FRAMEWORKS = {"sklearn": SklearnModel, "xgboost": XGBoostModel, "lightgbm": LightGBMModel}
ROWS = [[5.1, 3.5, 1.4, 0.2], [6.0, 2.9, 4.5, 1.5], [6.3, 3.3, 6.0, 2.5]]
FLAT = [x for row in ROWS for x in row]
CLASSES = [0, 1, 2]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """One folder per library, each with a classifier of the iris data set."""
    import joblib
    import lightgbm
    import xgboost
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression

    features, classes = load_iris(return_X_y=True)
    folders = {name: tmp_path_factory.mktemp(name) for name in FRAMEWORKS}
    joblib.dump(LogisticRegression(max_iter=500).fit(features, classes), folders["sklearn"] / "model.joblib")
    booster = xgboost.train(
        {"objective": "multi:softmax", "num_class": 3, "nthread": 1}, xgboost.DMatrix(features, classes), 5
    )
    booster.save_model(folders["xgboost"] / "model.ubj")
    lightgbm.train(
        {"objective": "multiclass", "num_class": 3, "num_threads": 1, "verbose": -1},
        lightgbm.Dataset(features, classes),
        10,
    ).save_model(folders["lightgbm"] / "model.bst")
    return folders


@pytest_asyncio.fixture
async def serve():
    """Serves models on a real port and answers a client; closes all of them at the end."""
    clients = []

    async def start(*served: Model) -> TestClient:
        for model in served:
            model.load()
        client = TestClient(TestServer(Server(served).application()))
        await client.start_server()
        clients.append(client)
        return client

    yield start
    for client in clients:
        await client.close()


def load(framework: str, models) -> Model:
    return FRAMEWORKS[framework]("iris", str(models[framework]))


@pytest.mark.parametrize("framework", FRAMEWORKS)
async def test_each_library_predicts_in_both_protocols(framework, models, serve):
    client = await serve(load(framework, models))
    v1 = await (await client.post("/v1/models/iris:predict", json={"instances": ROWS})).json()
    tensor = {"name": "x", "shape": [3, 4], "datatype": "FP64", "data": FLAT}
    v2 = await (await client.post("/v2/models/iris/infer", json={"id": "7", "inputs": [tensor]})).json()
    if framework == "lightgbm":
        assert [row.index(max(row)) for row in v1["predictions"]] == CLASSES
        assert v2["outputs"][0]["shape"] == [3, 3]
    else:
        assert v1["predictions"] == CLASSES
        assert v2["outputs"][0]["data"] == CLASSES
    assert (v2["model_name"], v2["id"]) == ("iris", "7")


async def test_health_and_metadata(models, serve):
    client = await serve(load("sklearn", models))
    for path, answer in {
        "/": {"status": "alive"},
        "/v1/models": {"models": ["iris"]},
        "/v1/models/iris": {"name": "iris", "ready": True},
        "/v2/health/live": {"live": True},
        "/v2/health/ready": {"ready": True},
        "/v2/models/iris": {
            "name": "iris",
            "platform": "",
            "inputs": [{"name": "input-0", "datatype": "FP64", "shape": [-1, 4]}],
            "outputs": [],
        },
        "/v2/models/iris/ready": {"name": "iris", "ready": True},
    }.items():
        assert await (await client.get(path)).json() == answer, path
    await client.post("/v1/models/iris:predict", json={"instances": ROWS})
    assert 'request_predict_seconds_count{model_name="iris"} 1.0' in await (await client.get("/metrics")).text()


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/models/iris:predict", b'{"instances', 400, "Unrecognized request format"),
        ("/v1/models/iris:predict", b"[1]", 400, "expected a JSON object"),
        ("/v1/models/iris:predict", b"{}", 400, 'Expected "instances" or "inputs"'),
        ("/v1/models/iris:predict", b'{"instances": 5}', 400, 'Expected "instances" to be a list'),
        ("/v1/models/iris:predict", b'{"instances": [[1,2],[3]]}', 400, "is not a table"),
        ("/v1/models/iris:predict", b'{"instances": [[1,2]]}', 500, "expecting 4 features"),
        ("/v1/models/iris:explain", b'{"instances": [[1,2]]}', 501, "does not explain"),
        ("/v1/models/rose:predict", b"{}", 404, "Model with name rose does not exist."),
        ("/v2/models/rose/infer", b"{}", 404, "Model with name rose does not exist."),
        ("/v2/models/iris/infer", b"{}", 400, 'Expected "inputs" to be a list'),
        ("/v2/models/iris/infer", b'{"inputs": [{"name": "x"}]}', 400, "unknown datatype None"),
        (
            "/v2/models/iris/infer",
            b'{"inputs": [{"name": "x", "datatype": "FP32", "shape": [9], "data": [1]}]}',
            400,
            "not FP32 of shape [9]",
        ),
        ("/v3/models", b"{}", 404, "Not Found"),
    ],
)
async def test_refusals_name_the_mistake(path, body, status, words, models, serve):
    client = await serve(load("sklearn", models))
    response = await client.post(path, data=body)
    assert response.status == status
    assert words in (await response.json())["error"]


async def test_binary_tensors_in_both_directions(models, serve):
    client = await serve(load("sklearn", models))
    raw = struct.pack("<12f", *FLAT)
    head = (
        b'{"inputs":[{"name":"x","shape":[3,4],"datatype":"FP32","parameters":{"binary_data_size":%d}}],'
        b'"parameters":{"binary_data_output":true}}' % len(raw)
    )
    response = await client.post("/v2/models/iris/infer", data=head + raw, headers={BINARY_HEADER: str(len(head))})
    body = await response.read()
    assert struct.unpack("<3q", body[int(response.headers[BINARY_HEADER]) :]) == (0, 1, 2)


async def test_a_slow_prediction_does_not_hold_up_others(serve):
    import threading

    release = threading.Event()

    class Slow(Model):
        def predict(self, payload, headers):
            assert release.wait(30)
            return {"predictions": []}

    client = await serve(Slow("slow"))
    running = asyncio.create_task(client.post("/v1/models/slow:predict", json={"instances": []}))
    assert (await client.get("/v2/health/ready")).status == 200
    assert not running.done()
    release.set()
    assert (await running).status == 200


async def test_streamed_and_raw_answers(serve):
    class Streamer(Model):
        async def predict(self, payload, headers):
            async def chunks():
                yield b"data: 1\n\n"
                yield b"data: 2\n\n"

            return payload if isinstance(payload, bytes) else chunks()

    client = await serve(Streamer("s"))
    assert await (await client.post("/v1/models/s:predict", json={})).text() == "data: 1\n\ndata: 2\n\n"
    image = await client.post("/v1/models/s:predict", data=b"\x89PNG", headers={"Content-Type": "image/png"})
    assert await image.read() == b"\x89PNG"


async def test_steps_may_be_any_callable(serve):
    def twice(function):
        return lambda self, payload, headers: function(self, {"x": 2 * payload["x"]}, headers)

    class Odd(Model):
        @staticmethod
        def preprocess(payload, headers):
            return {"x": payload["instances"][0]}

        @twice
        async def predict(self, payload, headers):
            return {"predictions": [payload["x"]]}

    client = await serve(Odd("odd"))
    answer = await client.post("/v1/models/odd:predict", json={"instances": [21]})
    assert await answer.json() == {"predictions": [42]}


async def test_a_transformer_stands_in_front_of_a_predictor(models, serve):
    predictor = await serve(load("sklearn", models))

    class Centimetres(Model):
        def preprocess(self, payload, headers):
            if isinstance(payload, InferRequest):
                payload.inputs[0].data = [x / 10 for x in payload.inputs[0].data]
                return payload
            return {"instances": [[x / 10 for x in row] for row in payload["instances"]]}

        def postprocess(self, result, headers):
            if isinstance(result, InferResponse):
                return result
            return {"names": [["setosa", "versicolor", "virginica"][i] for i in result["predictions"]]}

    transformer = Centimetres("iris")
    transformer.predictor = Predictor(f"{predictor.host}:{predictor.port}")
    client = await serve(transformer)
    rows = [[x * 10 for x in row] for row in ROWS]
    answer = await client.post("/v1/models/iris:predict", json={"instances": rows})
    assert await answer.json() == {"names": ["setosa", "versicolor", "virginica"]}
    tensor = {"name": "x", "shape": [3, 4], "datatype": "FP64", "data": [x * 10 for x in FLAT]}
    answer = await client.post("/v2/models/iris/infer", json={"inputs": [tensor]})
    assert (await answer.json())["outputs"][0]["data"] == CLASSES

    wrong = await client.post("/v1/models/iris:predict", json={"instances": [[1]]})
    assert wrong.status == 500
    assert "expecting 4 features" in (await wrong.json())["error"]
    transformer.predictor = Predictor("127.0.0.1:1")
    gone = await client.post("/v1/models/iris:predict", json={"instances": rows})
    assert gone.status == 502
    await transformer.predictor.close()


def test_model_files(tmp_path, models):
    model = FRAMEWORKS["sklearn"]("m", str(tmp_path))
    with pytest.raises(ModelFileError, match=r"no file that ends in \.joblib, \.pkl, \.pickle"):
        model.load()
    (tmp_path / "model.pkl").write_bytes(b"not a pickle")
    with pytest.raises(ModelFileError, match=r"model\.pkl does not load"):
        model.load()
    (tmp_path / "model.joblib").write_bytes((models["sklearn"] / "model.joblib").read_bytes())
    with pytest.raises(ModelFileError, match="More than one model file"):
        model.load()
    (tmp_path / "model.pkl").unlink()
    assert model.load()
    assert FRAMEWORKS["sklearn"]("m", str(tmp_path / "model.joblib")).load()
    with pytest.raises(ModelFileError, match=r"model\.joblib does not end in \.bst"):
        FRAMEWORKS["lightgbm"]("m", str(tmp_path / "model.joblib")).load()


async def test_compressed_requests_are_refused(serve):
    class Echo(Model):
        def load(self):
            self.ready = True
            return True

        def predict(self, payload, headers):
            return payload

    client = await serve(Echo("echo"))
    bomb = gzip.compress(bytes(10 << 20))
    answer = await client.post("/v1/models/echo:predict", data=bomb, headers={"Content-Encoding": "gzip"})
    assert answer.status == 415
    assert "compressed" in (await answer.json())["error"]


async def test_a_model_of_named_columns_is_asked_by_their_names(tmp_path, serve):
    import joblib
    import pandas
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from sklearn.tree import DecisionTreeClassifier

    table = pandas.DataFrame({"colour": ["red", "blue", "red"], "weight": [1.0, 2.0, 3.0]})
    columns = ColumnTransformer([("colour", OneHotEncoder(), ["colour"])], remainder="passthrough")
    model = make_pipeline(columns, DecisionTreeClassifier(random_state=0)).fit(table, [0, 1, 2])
    joblib.dump(model, tmp_path / "model.joblib")
    client = await serve(FRAMEWORKS["sklearn"]("fruit", str(tmp_path)))
    rows = [{"colour": "blue", "weight": 2.0}, {"weight": 3.0, "colour": "red"}]
    v1 = await (await client.post("/v1/models/fruit:predict", json={"instances": rows})).json()
    assert v1 == {"predictions": [1, 2]}
    inputs = [
        {"name": "colour", "shape": [2], "datatype": "BYTES", "data": ["blue", "red"]},
        {"name": "weight", "shape": [2], "datatype": "FP64", "data": [2.0, 3.0]},
    ]
    asked = {"parameters": {"content_type": "pd"}, "inputs": inputs}
    v2 = await (await client.post("/v2/models/fruit/infer", json=asked)).json()
    assert v2["outputs"][0]["data"] == [1, 2]


def test_a_shape_of_a_million_dimensions_is_refused_before_it_is_multiplied():
    def decode(dimensions: int) -> None:
        shape = [2**62] * dimensions
        tensor = {"name": "x", "shape": shape, "datatype": "BYTES", "parameters": {"binary_data_size": 0}}
        body = json.dumps({"inputs": [tensor]}).encode()
        with pytest.raises(InvalidInput, match="input x has no valid shape"):
            decode_request(body, str(len(body)))

    assert_grows_as_its_input(decode, 2_000)


def test_rows_that_share_no_column_are_no_table():
    with pytest.raises(InvalidInput, match="too few columns in common"):
        rows_of({"instances": [{f"c{number}": 1} for number in range(10_000)]})
    assert rows_of({"instances": [{"a": 1}, {"b": 2}]}).shape == (2, 2)

"""Model files of scikit-learn, xgboost and lightgbm: found by their ending, loaded, asked.

The libraries are imported when a model of theirs is loaded; each is an optional extra of the package.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from isvc.pods.modelserver.errors import InferenceError, InvalidInput, ModelFileError, ServingError
from isvc.pods.modelserver.model import Headers, Model, Payload, Result
from isvc.pods.modelserver.tensors import InferRequest, Tensor

MOST_EMPTY_CELLS = 1_000_000
HIGHEST_RATIO = 100  # of a table's cells to the values that are given


class TabularModel(Model):
    """A model in one file that turns a table of rows into an array."""

    packages: ClassVar[tuple[str, ...]]
    remedy: ClassVar[str]  # the command that brings the packages
    endings: ClassVar[tuple[str, ...]]

    def __init__(self, name: str, model_dir: str, nthread: int = 1) -> None:
        super().__init__(name)
        self.model_dir = Path(model_dir)
        self.nthread = nthread
        self._ask: Callable[[Any], Any] | None = None
        self.features = 0  # how many a row has, where the model knows

    def load(self) -> bool:
        self.load_file(model_file(self.model_dir, self.endings))
        return True

    def load_file(self, path: Path) -> None:
        try:
            self._ask = self.open(path)
        except ModelFileError:
            raise
        except ModuleNotFoundError as error:
            hint = f" ({self.remedy})" if error.name in self.packages else ""
            raise ModelFileError(f"{path.name} needs the Python package {error.name}{hint}") from error
        except Exception as error:
            raise ModelFileError(f"{path.name} does not load: {type(error).__name__}: {error}") from error
        self.ready = True

    def open(self, path: Path) -> Callable[[Any], Any]:
        """Loads the file and answers the function that predicts."""
        raise NotImplementedError

    def columns(self) -> list[str] | None:
        return None

    def input_types(self) -> list[dict[str, Any]]:
        return [{"name": "input-0", "datatype": "FP64", "shape": [-1, self.features]}] if self.features else []

    def predict(self, payload: Any, headers: Headers) -> Result:
        rows = rows_of(payload, self.columns())
        assert self._ask is not None
        try:
            result = self._ask(rows)
        except ServingError:
            raise
        except Exception as error:
            raise InferenceError(str(error)) from error
        if isinstance(payload, InferRequest):
            import numpy

            return payload.answer(self.name, [Tensor.from_numpy("output-0", numpy.asarray(result))])
        return {"predictions": result.tolist() if hasattr(result, "tolist") else result}


class SklearnModel(TabularModel):
    packages, remedy = ("joblib", "sklearn"), "pip install 'isvc[sklearn]'"
    endings = (".joblib", ".pkl", ".pickle")

    def open(self, path: Path) -> Callable[[Any], Any]:
        import joblib

        model = joblib.load(path)
        if not hasattr(model, "predict"):
            raise ModelFileError(f"{path.name} holds a {type(model).__name__}, which has no predict method")
        self.features = int(getattr(model, "n_features_in_", 0))
        wants_proba = os.environ.get("PREDICT_PROBA", "false").lower() == "true"
        ask: Callable[[Any], Any] = (
            model.predict_proba if wants_proba and hasattr(model, "predict_proba") else model.predict
        )
        return ask


class XGBoostModel(TabularModel):
    packages, remedy = ("xgboost",), "pip install 'isvc[xgboost]'"
    endings = (".bst", ".json", ".ubj")

    def open(self, path: Path) -> Callable[[Any], Any]:
        import xgboost

        booster = xgboost.Booster(params={"nthread": self.nthread}, model_file=str(path))
        self.features = int(booster.num_features())
        return lambda rows: booster.predict(xgboost.DMatrix(rows, nthread=self.nthread))


class LightGBMModel(TabularModel):
    packages, remedy = ("lightgbm",), "pip install 'isvc[lightgbm]'"
    endings = (".bst",)
    _names: list[str] | None = None

    def open(self, path: Path) -> Callable[[Any], Any]:
        import lightgbm

        booster = lightgbm.Booster(params={"nthread": self.nthread}, model_file=str(path))
        self._names = booster.feature_name()
        self.features = int(booster.num_feature())
        return lambda rows: booster.predict(rows, num_threads=self.nthread)

    def columns(self) -> list[str] | None:
        return self._names


def model_file(folder: Path, endings: Sequence[str]) -> Path:
    """Returns the one file in the folder with a known ending, or the file itself where a claim's path leads to one."""
    if folder.is_file() and folder.suffix in endings:
        return folder
    if folder.is_file():
        raise ModelFileError(f"{folder.name} does not end in {' or '.join(endings)}")
    if not folder.is_dir():
        raise ModelFileError(f"the model folder {folder} does not exist")
    found = sorted(path for path in folder.iterdir() if path.is_file() and path.suffix in endings)
    if not found:
        names = ", ".join(sorted(path.name for path in folder.iterdir())) or "nothing"
        raise ModelFileError(f"no file that ends in {', '.join(endings)} in {folder}; it holds {names}")
    if len(found) > 1:
        raise ModelFileError(
            f"More than one model file is detected, only one is allowed in {folder}: "
            + ", ".join(path.name for path in found)
        )
    return found[0]


def rows_of(payload: Payload, columns: list[str] | None = None) -> Any:
    """Returns the table in a request of either protocol: an array, a list of strings, or a frame of named columns."""
    if isinstance(payload, InferRequest):
        return _tensor_rows(payload)
    if not isinstance(payload, dict):
        raise InvalidInput("Unrecognized request format: expected a JSON object")
    if "inputs" not in payload and "instances" not in payload:
        raise InvalidInput('Expected "instances" or "inputs" in the request')
    key = "inputs" if "inputs" in payload else "instances"
    instances = payload[key]
    if not isinstance(instances, list):
        raise InvalidInput(f'Expected "{key}" to be a list')
    if instances and isinstance(instances[0], str):
        return instances
    if instances and (isinstance(instances[0], dict) or _is_list_of_objects(instances[0])):
        return _frame(instances, columns)
    import numpy

    try:
        return numpy.array(instances)
    except ValueError as error:
        raise InvalidInput(f'"{key}" is not a table: {error}') from None


def _tensor_rows(request: InferRequest) -> Any:
    if request.parameters.get("content_type") == "pd":
        return _pandas().DataFrame({tensor.name: tensor.as_numpy().ravel() for tensor in request.inputs})
    tensor = request.inputs[0]
    if tensor.datatype == "BYTES":
        return tensor.data
    return tensor.as_numpy()


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)


def _frame(instances: list[Any], columns: list[str] | None) -> Any:
    rows = [row for instance in instances for row in (instance if isinstance(instance, list) else [instance])]
    if not all(isinstance(row, dict) for row in rows):
        raise InvalidInput("either all instances have named columns, or none has")
    _refuse_sparse(rows)
    scalar = [{k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in row.items()} for row in rows]
    return _pandas().DataFrame(scalar, columns=columns)


def _refuse_sparse(rows: list[dict[str, Any]]) -> None:
    """A table has a cell for every row and column: ten thousand rows that share no column would be 100 million."""
    cells, given = len(rows) * len({name for row in rows for name in row}), sum(map(len, rows))
    if cells > max(MOST_EMPTY_CELLS, HIGHEST_RATIO * given):
        raise InvalidInput(f"the rows have too few columns in common: a table of {cells} cells for {given} values")


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError:
        raise InvalidInput("named columns need pandas, which is not installed") from None
    return pandas

"""Models like those that KServe's tests fetch from its bucket, trained here: same files, inputs and answers.

Where a test expects the very number that a model of KServe's gives, the training data has that row with that number,
which a decision tree then repeats.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import joblib
import lightgbm
import numpy
import pandas
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

_PRICE = 12.202832815138274  # of the house in sklearn_mixed.json
_QUALITY = 5.576883936610762  # of the wine in mlflow_input_v2.json
_NEWSGROUP = 19  # of the text in news_grouping_input_v1.json
_MLMODEL = """\
flavors:
  python_function:
    loader_module: mlflow.sklearn
    model_path: model.pkl
    python_version: 3.11.0
  sklearn:
    pickled_model: model.pkl
    serialization_format: cloudpickle
    sklearn_version: 1.0.0
"""


def train(models: Path, data: Path) -> None:
    """Fills a folder in the place of `gs://kfserving-examples/models`; `data` has the inputs of the tests."""
    features, classes = load_iris(return_X_y=True)
    _save_joblib(SVC(gamma="scale").fit(features, classes), models / "sklearn/1.0/model")
    _save_joblib(_newsgroups(data), models / "sklearn/newsgroup")
    _save_joblib(_houses(data), models / "sklearn/1.3/mixedtype")
    for folder in ("xgboost/1.5/model", "xgboost/iris"):
        _xgboost(features, classes, models / folder)
    for folder, names in (("lightgbm/iris", True), ("lightgbm/v2/iris", False)):
        _lightgbm(features, classes, models / folder, named=names)
    _wine(data, models / "mlflow/wine")


def _save_joblib(model: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    joblib.dump(model, folder / "model.joblib")


def _xgboost(features: Any, classes: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    parameters = {"objective": "multi:softmax", "num_class": 3}
    booster = xgboost.train(parameters, xgboost.DMatrix(features, classes), num_boost_round=10)
    booster.save_model(folder / "model.json")
    (folder / "model.json").rename(folder / "model.bst")


def _lightgbm(features: Any, classes: Any, folder: Path, *, named: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = [name.replace(" ", "_") for name in load_iris().feature_names] if named else "auto"
    parameters = {"objective": "multiclass", "num_class": 3, "verbose": -1}
    table = lightgbm.Dataset(features, classes, feature_name=names)
    lightgbm.train(parameters, table, num_boost_round=20).save_model(folder / "model.bst")


def _newsgroups(data: Path) -> Any:
    text = json.loads((data / "news_grouping_input_v1.json").read_text())["inputs"][0]
    others = [" ".join(str(number) for number in range(group, group + 30)) for group in range(_NEWSGROUP)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    return model.fit([*others, text], [*range(_NEWSGROUP), _NEWSGROUP])


def _houses(data: Path) -> Any:
    house = json.loads((data / "sklearn_mixed.json").read_text())
    texts = [name for name, value in house.items() if isinstance(value, str)]
    other = {name: "other" if name in texts else value + 100 for name, value in house.items()}
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), texts), remainder="passthrough")
    model = make_pipeline(encoder, DecisionTreeRegressor(random_state=0))
    return model.fit(pandas.DataFrame([house, other]), [_PRICE, 1.0])


def _wine(data: Path, folder: Path) -> None:
    inputs = json.loads((data / "mlflow_input_v2.json").read_text())["inputs"]
    wine = {each["name"]: each["data"][0] for each in inputs}
    other = {name: value + 10 for name, value in wine.items()}
    table = pandas.DataFrame([wine, other]).astype(numpy.float64)
    model = DecisionTreeRegressor(random_state=0).fit(table, [_QUALITY, 1.0])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    (folder / "MLmodel").write_text(_MLMODEL)

"""Models like those that KServe's tests fetch from its bucket, trained here: same files, inputs and answers.

Where a test expects the very number that a model of KServe's gives, the training data has that row with that number,
which a decision tree then repeats; of a model of LightGBM's the leaves are set to it.
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
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

_PRICE = 12.202832815138274  # of the house in sklearn_mixed.json
_QUALITY = 5.576883936610762  # of the wine in mlflow_input_v2.json
_NEWSGROUP = 19  # of the text in news_grouping_input_v1.json
_DIGIT = 3  # in mnist_input_bw_flat.json
_FLOWERS = [[6.8, 2.8, 4.8, 1.4], [6.0, 3.4, 4.5, 1.6]]  # in iris_input_v2.json
_SCORES = [[-11.640367693601698, 0.0, -7.179843824614542], [-12.21112000340029, 0.0, -12.69704119309557]]
_MULTICLASS = {"objective": "multiclass", "num_class": 3, "verbose": -1}
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
    _save_joblib(_digits(data), models / "sklearn/mnist/art")
    for folder in ("xgboost/1.5/model", "xgboost/iris"):
        _xgboost(features, classes, models / folder)
    _lightgbm(features, classes, models / "lightgbm/iris")
    _lightgbm_with_scores(features, models / "lightgbm/v2/iris")
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


def _lightgbm(features: Any, classes: Any, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = [name.replace(" ", "_") for name in load_iris().feature_names]
    table = lightgbm.Dataset(features, classes, feature_name=names)
    lightgbm.train(_MULTICLASS, table, num_boost_round=20).save_model(folder / "model.bst")


def _lightgbm_with_scores(features: Any, folder: Path) -> None:
    """A tree for each class that tells the two flowers apart, so that each has leaves of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    classes = (features[:, 0] > 6.4).astype(int) + numpy.arange(len(features)) % 2
    booster = lightgbm.train({**_MULTICLASS, "num_leaves": 2}, lightgbm.Dataset(features, classes), num_boost_round=1)
    leaves = booster.predict(numpy.array(_FLOWERS), pred_leaf=True)
    for row, scores in zip(leaves, _SCORES, strict=True):
        for tree, (leaf, score) in enumerate(zip(row, scores, strict=True)):
            booster.set_leaf_output(tree, int(leaf), score)
    booster.save_model(folder / "model.bst")


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


def _digits(data: Path) -> Any:
    """A tree that looks at one corner, which an adversary finds at once."""
    digit = json.loads((data / "mnist_input_bw_flat.json").read_text())["instances"][0]
    others = [[digit[0] + change, *digit[1:]] for change in (-0.2, 0.2)]
    return DecisionTreeClassifier(random_state=0).fit([digit, *others], [_DIGIT, _DIGIT + 1, _DIGIT + 1])


def _wine(data: Path, folder: Path) -> None:
    inputs = json.loads((data / "mlflow_input_v2.json").read_text())["inputs"]
    wine = {each["name"]: each["data"][0] for each in inputs}
    other = {name: value + 10 for name, value in wine.items()}
    table = pandas.DataFrame([wine, other]).astype(numpy.float64)
    model = DecisionTreeRegressor(random_state=0).fit(table, [_QUALITY, 1.0])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pkl").write_bytes(pickle.dumps(model))
    (folder / "MLmodel").write_text(_MLMODEL)

"""Trains the models of the examples from scikit-learn's own data: `python -m isvc.local.examples [FOLDER]`.

Two versions of an iris classifier, so that there is something to roll out. Nothing is downloaded; what is there stays.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from isvc.local.home import Home
from isvc.local.install import MODELS_CLAIM

NAMES = ("iris", "iris-v2")


def folder(claims: Path) -> Path:
    """Where the claim `models` of the namespace `default` lies."""
    return claims / "default" / MODELS_CLAIM


def missing(models: Path) -> list[str]:
    return [name for name in NAMES if not (models / name / "model.joblib").exists()]


def manifests(home: Home) -> Path:
    """Where the examples' manifests are: in the checkout one works in, or else in a copy of those that ship."""
    if Path("examples/iris.yaml").exists():
        return Path("examples")
    shipped = Path(__file__).with_name("shipped_examples")
    source = shipped if shipped.exists() else Path(__file__).parents[3] / "examples"
    if source.exists():
        shutil.copytree(source, home.examples, dirs_exist_ok=True)
    return home.examples


def train(models: Path) -> None:
    import joblib
    from sklearn.datasets import load_iris
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    features, classes = load_iris(return_X_y=True)
    for name, model in zip(NAMES, (SVC(), DecisionTreeClassifier(random_state=0)), strict=True):
        target = models / name
        target.mkdir(parents=True, exist_ok=True)
        joblib.dump(model.fit(features, classes), target / "model.joblib.new")
        (target / "model.joblib.new").rename(target / "model.joblib")  # whole, or not there


def main() -> None:
    models = Path(sys.argv[1]) if len(sys.argv) > 1 else folder(Home.default().claims)
    try:
        if missing(models):
            train(models)
    except ModuleNotFoundError as error:
        sys.exit(f"{error}; pip install 'isvc[sklearn]'")


if __name__ == "__main__":
    main()

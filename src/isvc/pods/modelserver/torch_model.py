"""Models in TorchScript, run by PyTorch: tensors in, in the order or by the names of the model's arguments.

PyTorch is larger than everything else here together, so no extra of the package has it: `isvc runtime add pytorch`
makes an environment in which this module runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from isvc.pods.modelserver.errors import InferenceError, ModelFileError
from isvc.pods.modelserver.frameworks import TabularModel
from isvc.pods.modelserver.model import Headers, Result
from isvc.pods.modelserver.tensors import InferRequest, Tensor

_EMBEDDINGS = ("Embedding", "EmbeddingBag")


class TorchScriptModel(TabularModel):
    """v1: the rows are the first argument, and the first output answers. v2: tensors have the types that they say."""

    packages, remedy = ("torch",), "isvc runtime add pytorch"
    endings = (".pt", ".pth")
    _module: Any = None
    _number: Any = None  # the type that numbers of v1, which have none, are given

    def load(self) -> bool:
        if any(self.model_dir.rglob("*.mar")):
            raise ModelFileError(
                "an archive of TorchServe (.mar) needs TorchServe, which cannot run here; TorchScript (.pt) can"
            )
        return super().load()

    def open(self, path: Path) -> Callable[[Any], Any]:
        import torch

        torch.set_num_threads(self.nthread)
        try:
            self._module = torch.jit.load(str(path), map_location="cpu").eval()
        except RuntimeError as error:
            why = str(error).strip().partition(". ")[0]
            raise ModelFileError(f"{path.name} is not TorchScript, which torch.jit.save writes: {why}") from error
        floats = (each.dtype for each in self._module.parameters() if each.is_floating_point())
        takes_integers = any(each.original_name in _EMBEDDINGS for each in self._module.modules())
        self._number = None if takes_integers else next(floats, torch.float32)
        return lambda rows: self._run([torch.as_tensor(rows, dtype=self._number)])[0][1]

    def predict(self, payload: Any, headers: Headers) -> Result:
        if not isinstance(payload, InferRequest):
            return super().predict(payload, headers)
        tensors = [Tensor.from_numpy(name, array) for name, array in self._run(self._arguments(payload))]
        return payload.answer(self.name, tensors)

    def _arguments(self, request: InferRequest) -> list[Any]:
        import torch

        given = {tensor.name: torch.as_tensor(tensor.as_numpy()) for tensor in request.inputs}
        names = [each.name for each in self._module.forward.schema.arguments[1:]]
        return [given[name] for name in names if name in given] if given.keys() <= set(names) else list(given.values())

    def _run(self, arguments: list[Any]) -> list[tuple[str, Any]]:
        """Returns the outputs as arrays, with their names."""
        import torch

        try:
            with torch.inference_mode():
                answer = self._module(*arguments)
        except RuntimeError as error:
            raise InferenceError(str(error).strip().splitlines()[-1]) from error
        return [(name, tensor.numpy()) for name, tensor in _outputs(answer)]


def _outputs(answer: Any) -> list[tuple[str, Any]]:
    if isinstance(answer, Mapping):
        return list(answer.items())
    several = answer if isinstance(answer, tuple | list) else [answer]
    return [(f"output-{index}", tensor) for index, tensor in enumerate(several)]

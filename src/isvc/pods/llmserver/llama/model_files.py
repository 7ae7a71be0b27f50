"""Finds the GGUF file that `--model` and `--lora-modules` mean."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from pathlib import Path

from isvc.pods.llmserver.errors import ServerError
from isvc.pods.llmserver.llama.gguf import read_header

log = logging.getLogger("isvc.pods.llmserver")

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
_OTHER_FORMATS = (".safetensors", ".bin", ".pt", ".pth", ".onnx")


def find_model(where: str) -> Path:
    """Returns the file to load: of a folder its only or first model, of a split model its first part."""
    path = Path(where)
    if path.is_dir():
        return _in_folder(path, "model")
    if not path.is_file():
        raise ServerError(f"the model {where} is neither a file nor a folder on this machine")
    if path.suffix.lower() in _OTHER_FORMATS:
        raise ServerError(f"llama.cpp needs GGUF, and {path} is {path.suffix[1:]}: use a GGUF build of the model")
    return _complete(path)


def find_adapter(path: Path) -> Path:
    if path.is_dir():
        return _in_folder(path, "adapter")
    if not path.is_file():
        raise ServerError(f"the LoRA adapter {path} is neither a file nor a folder on this machine")
    if read_header(path).kind != "adapter":
        raise ServerError(f"{path} is a model and no LoRA adapter")
    return path


def _in_folder(folder: Path, kind: str) -> Path:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    models = [path for path in _first_parts(files) if read_header(path).kind == kind]
    if not models:
        raise ServerError(_nothing_to_load(folder, kind, files))
    if len(models) > 1:
        log.warning("%s holds %d models; serving %s", folder, len(models), models[0].relative_to(folder))
    return _complete(models[0])


def _first_parts(files: Iterable[Path]) -> Iterable[Path]:
    for path in files:
        shard = _SHARD.search(path.name)
        if path.suffix.lower() == ".gguf" and (shard is None or int(shard[1]) == 1):
            yield path


def _complete(path: Path) -> Path:
    """Returns the path, if it is a whole model or the first part of one whose other parts lie beside it."""
    shard = _SHARD.search(path.name)
    if shard is None:
        return path
    stem = path.name[: shard.start()]
    parts = [path.with_name(f"{stem}-{number:05}-of-{shard[2]}.gguf") for number in range(1, int(shard[2]) + 1)]
    missing = [part.name for part in parts if not part.is_file()]
    if missing:
        raise ServerError(f"the model {path} is split, and {missing[0]} is missing beside it")
    return parts[0]


def _nothing_to_load(folder: Path, kind: str, files: Iterable[Path]) -> str:
    others = sorted({path.suffix[1:] for path in files if path.suffix.lower() in _OTHER_FORMATS})
    what = "model" if kind == "model" else "LoRA adapter"
    if others:
        return f"llama.cpp needs GGUF, and {folder} holds only {', '.join(others)}: use a GGUF build of the {what}"
    return f"{folder} holds no {what}: there is no GGUF file in it"

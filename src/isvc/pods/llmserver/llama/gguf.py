"""Reads what the head of a GGUF file says about the model, without loading it."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from isvc.pods.llmserver.errors import ServerError

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_LONGEST_STRING = 1 << 24
# Longer lists are the vocabulary; what describes the model comes before it in the files that llama.cpp's tools write.
_LONGEST_LIST = 1000


@dataclass(frozen=True, slots=True)
class Header:
    metadata: Mapping[str, Any]

    @property
    def architecture(self) -> str:
        return str(self.metadata.get("general.architecture", ""))

    @property
    def kind(self) -> str:
        """`model`, `adapter` for LoRA, `mmproj` for an image encoder."""
        return str(self.metadata.get("general.type", "model"))

    @property
    def embeds_only(self) -> bool:
        """True for a model that was trained for embeddings: it says how to pool them."""
        return f"{self.architecture}.pooling_type" in self.metadata


def read_header(path: Path) -> Header:
    try:
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ServerError(f"{path} is not a GGUF file")
            _version, _tensors, entries = _unpack(file, "<IQQ")
            return Header(_metadata(file, entries))
    except (OSError, struct.error, ValueError) as error:
        raise ServerError(f"{path} is no readable GGUF file: {error}") from None


def _metadata(file: BinaryIO, entries: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(entries):
        key = _string(file)
        (kind,) = _unpack(file, "<I")
        if kind == _ARRAY:
            item, length = _unpack(file, "<IQ")
            if length > _LONGEST_LIST or item == _ARRAY:
                break
            found[key] = [_value(file, item) for _ in range(length)]
        else:
            found[key] = _value(file, kind)
    return found


def _value(file: BinaryIO, kind: int) -> Any:
    if kind == _STRING:
        return _string(file)
    if kind not in _SCALARS:
        raise ValueError(f"unknown type {kind} of a value")
    return _unpack(file, _SCALARS[kind])[0]


def _string(file: BinaryIO) -> str:
    (length,) = _unpack(file, "<Q")
    if length > _LONGEST_STRING:
        raise ValueError(f"a text of {length} bytes")
    return file.read(length).decode(errors="replace")


def _unpack(file: BinaryIO, layout: str) -> tuple[Any, ...]:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))

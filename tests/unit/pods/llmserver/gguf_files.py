"""Small GGUF files: heads without a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gguf import GGUFWriter


def head(path: Path, kind: str = "model", pooling: int | None = None) -> Path:
    from gguf import GGUFWriter

    writer = GGUFWriter(path, "llama")
    writer.add_type(kind)
    if pooling is not None:
        writer.add_uint32("llama.pooling_type", pooling)
    writer.add_array("tokenizer.ggml.tokens", ["a"] * 2000)
    return _write(writer, path)


def _write(writer: GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path

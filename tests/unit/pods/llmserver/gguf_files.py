"""Small GGUF files: LoRA adapters of random weights, and heads without a model."""

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


def adapter(path: Path, layers: int = 30, width: int = 576, rank: int = 4) -> Path:
    """Noise for the queries of every layer of SmolLM2-135M: strong enough that the answers change."""
    import numpy
    from gguf import GGUFWriter

    random = numpy.random.default_rng(1)
    writer = GGUFWriter(path, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(rank))
    for layer in range(layers):
        for suffix, shape in (("lora_a", (rank, width)), ("lora_b", (width, rank))):
            noise = random.normal(0, 0.5, shape).astype(numpy.float32)
            writer.add_tensor(f"blk.{layer}.attn_q.weight.{suffix}", noise)
    return _write(writer, path)


def _write(writer: GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path

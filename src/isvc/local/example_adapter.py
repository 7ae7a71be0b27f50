"""A LoRA adapter for the examples' language model, in GGUF: small, and made of noise.

It teaches the model nothing. It shows that an adapter is a model of its own, whose answers are other ones.
"""

from __future__ import annotations

import array
import random
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_LAYERS, _WIDTH, _RANK = 30, 576, 4  # of SmolLM2-135M
_STRENGTH: Final = 0.5  # enough to be seen in the first words
_STRING, _FLOAT32, _TENSOR_OF_FLOAT32 = 8, 6, 0
_ALIGNMENT: Final = 32


def write_adapter(path: Path) -> None:
    tensors = list(_tensors())
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 4)
    for name, text in (("general.architecture", "llama"), ("general.type", "adapter"), ("adapter.type", "lora")):
        head += _text(name) + struct.pack("<I", _STRING) + _text(text)
    head += _text("adapter.lora.alpha") + struct.pack("<If", _FLOAT32, _RANK)
    offset = 0
    for name, shape, content in tensors:
        head += _text(name) + struct.pack("<IQQIQ", len(shape), *shape, _TENSOR_OF_FLOAT32, offset)
        offset += len(_padded(content))
    path.write_bytes(_padded(head) + b"".join(_padded(content) for _, _, content in tensors))


def _tensors() -> Iterator[tuple[str, tuple[int, int], bytes]]:
    """Yields name, shape (fastest dimension first) and content of each: the two factors of every layer's queries."""
    noise = random.Random(1)  # noqa: S311 - no secret
    for layer in range(_LAYERS):
        for suffix, shape in (("lora_a", (_WIDTH, _RANK)), ("lora_b", (_RANK, _WIDTH))):
            values = array.array("f", (noise.gauss(0, _STRENGTH) for _ in range(_WIDTH * _RANK)))
            yield f"blk.{layer}.attn_q.weight.{suffix}", shape, values.tobytes()


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % _ALIGNMENT)

"""Remembers which member of a pool has seen which beginnings of prompts, and so may still have them in its cache.

A prompt is cut into blocks; the hash of a block includes those before it, so that equal hashes mean equal beginnings.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from isvc.wire.bounded import Bounded

_BLOCK = 64  # characters
_BLOCKS = 256  # of a prompt that count
_REMEMBERED = 30_000  # blocks of one member


def blocks(body: bytes) -> list[int]:
    """Returns hashes of the prompt in a request to OpenAI's API; none for a request without one."""
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    if not isinstance(request, dict):
        return []
    prompt = request.get("messages") or request.get("prompt") or request.get("input")
    if not prompt:
        return []
    text = prompt if isinstance(prompt, str) else orjson.dumps(prompt).decode()
    hashes, chain = [], hash(str(request.get("model", "")))
    for start in range(0, min(len(text), _BLOCK * _BLOCKS) - _BLOCK + 1, _BLOCK):
        chain = hash((chain, text[start : start + _BLOCK]))
        hashes.append(chain)
    return hashes


class SeenPrefixes:
    """The blocks that one member has seen, the latest last."""

    def __init__(self) -> None:
        self._blocks: Bounded[int, None] = Bounded(_REMEMBERED)

    def share(self, prompt: Sequence[int]) -> float:
        """Returns how much of the beginning of a prompt was seen: 0 for nothing, 1 for all of it."""
        seen = 0
        while seen < len(prompt) and prompt[seen] in self._blocks:
            seen += 1
        return seen / len(prompt) if prompt else 0.0

    def add(self, prompt: Sequence[int]) -> None:
        for block in prompt:
            self._blocks[block] = None

"""vLLM's /tokenize and /detokenize."""

from __future__ import annotations

from typing import Any

from isvc.llmserver.engine import Engine
from isvc.llmserver.errors import BadRequest
from isvc.llmserver.protocol import DetokenizeRequest, TokenizeRequest

Json = dict[str, Any]


async def tokenize(asked: TokenizeRequest, engine: Engine) -> Json:
    if (asked.prompt is None) == (asked.messages is None):
        raise BadRequest("Give either prompt or messages")
    text = asked.prompt
    if text is None:
        text = (await engine.post("/apply-template", {"messages": asked.messages}))["prompt"]
    body = {"content": text, "add_special": asked.add_special_tokens, "parse_special": True, "with_pieces": True}
    tokens = (await engine.post("/tokenize", body))["tokens"]
    return {
        "count": len(tokens),
        "max_model_len": engine.max_model_len,
        "tokens": [token["id"] for token in tokens],
        "token_strs": [_text(token["piece"]) for token in tokens] if asked.return_token_strs else None,
    }


async def detokenize(asked: DetokenizeRequest, engine: Engine) -> Json:
    unknown = next((token for token in asked.tokens if token >= engine.vocabulary), None)
    if unknown is not None:
        raise BadRequest(f"Token {unknown} is not in the vocabulary of {engine.vocabulary} tokens", "tokens")
    return {"prompt": (await engine.post("/detokenize", {"tokens": asked.tokens}))["content"]}


def _text(piece: str | list[int]) -> str:
    """A piece that is part of a character comes as bytes."""
    return piece if isinstance(piece, str) else bytes(piece).decode(errors="replace")

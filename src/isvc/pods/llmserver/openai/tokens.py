"""vLLM's /tokenize and /detokenize, and its refusal of answers that are longer than the context has room for."""

from __future__ import annotations

from typing import Any

import orjson

from isvc.pods.llmserver.errors import BadRequest
from isvc.pods.llmserver.llama.engine import Engine
from isvc.pods.llmserver.openai.protocol import DetokenizeRequest, TokenizeRequest

Json = dict[str, Any]

_OF_THE_TEMPLATE = ("messages", "tools", "tool_choice", "chat_template_kwargs", "add_generation_prompt",
                    "continue_final_message")  # fmt: skip


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


async def check_room(body: Json, engine: Engine) -> None:
    """Refuses a generation that may become longer than the context; without `max_tokens` it ends where that does.

    A token is a byte at least, so that most requests need not be counted. An input that is too long by itself is left
    to llama.cpp to refuse.
    """
    wanted, limit = body.get("max_tokens"), engine.max_model_len
    if wanted is None:
        return
    try:
        size = len(orjson.dumps(body))
    except orjson.JSONEncodeError:
        return  # which is refused when it is passed on
    if wanted + size <= limit:
        return
    count = await _count(body, engine)
    if count < limit < count + wanted:
        raise BadRequest(
            f"'max_tokens' or 'max_completion_tokens' is too large: {wanted}. This model's maximum context length is "
            f"{limit} tokens and your request has {count} input tokens ({wanted} > {limit} - {count}).",
            "max_tokens",
        )


async def _count(body: Json, engine: Engine) -> int:
    text = body.get("prompt")
    if isinstance(text, list):
        return len(text)
    if text is None:
        given = {name: body[name] for name in _OF_THE_TEMPLATE if name in body}
        text = (await engine.post("/apply-template", given))["prompt"]
    asked = {"content": text, "add_special": True, "parse_special": True}
    return len((await engine.post("/tokenize", asked))["tokens"])


def _text(piece: str | list[int]) -> str:
    """Returns the text of a piece, which comes as bytes when it is part of a character."""
    return piece if isinstance(piece, str) else bytes(piece).decode(errors="replace")

"""The bodies of OpenAI's API, made from llama.cpp's answers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    prompt: int = 0
    cached: int = 0
    generated: int = 0

    @classmethod
    def of(cls, event: Json) -> Usage:
        usage = event.get("usage") or {}
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        return cls(usage.get("prompt_tokens", 0), cached, usage.get("completion_tokens", 0))


def total_usage(parts: Sequence[Usage], n: int) -> Json:
    """Returns the usage of a request: a prompt that was answered n times counts once."""
    prompt, generated = sum(part.prompt for part in parts[::n]), sum(part.generated for part in parts)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": generated,
        "total_tokens": prompt + generated,
        "prompt_tokens_details": {"cached_tokens": sum(part.cached for part in parts[::n])},
    }


@dataclass(frozen=True, slots=True)
class Envelope:
    """What all parts of one answer share."""

    kind: str  # chat.completion or text_completion
    model: str
    id: str = ""
    created: int = field(default_factory=lambda: int(time.time()))

    @classmethod
    def new(cls, kind: str, model: str) -> Envelope:
        prefix = "chatcmpl" if kind == "chat.completion" else "cmpl"
        return cls(kind, model, f"{prefix}-{uuid.uuid4().hex}")

    def whole(self, choices: list[Json], usage: Json) -> Json:
        return self._body(self.kind, choices) | {"usage": usage}

    def part(self, choices: list[Json], usage: Json | None = None) -> Json:
        kind = "chat.completion.chunk" if self.kind == "chat.completion" else self.kind
        body = self._body(kind, choices)
        return body if usage is None else body | {"usage": usage}

    def _body(self, kind: str, choices: list[Json]) -> Json:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}


def assemble(parts: Sequence[Json]) -> Json:
    """Puts one choice together from the parts of its stream."""
    last, tokens = parts[-1], [token for part in parts for token in (part.get("logprobs") or {}).get("content") or ()]
    choice: Json = {
        "finish_reason": next((part["finish_reason"] for part in parts if part.get("finish_reason")), None),
        "logprobs": {"content": tokens} if tokens else None,
    }
    if "delta" in last:
        return choice | {"message": _message([part["delta"] for part in parts])}
    return choice | {"text": "".join(part["text"] for part in parts)}


def _message(deltas: Sequence[Json]) -> Json:
    message: Json = {"role": "assistant"}
    calls: dict[int, Json] = {}
    for delta in deltas:
        for name in ("content", "reasoning_content"):
            if delta.get(name):
                message[name] = message.get(name, "") + delta[name]
        for part in delta.get("tool_calls") or ():
            call = calls.setdefault(part["index"], {"type": "function", "function": {"name": "", "arguments": ""}})
            call.update({name: part[name] for name in ("id", "type") if part.get(name)})
            for name, text in (part.get("function") or {}).items():
                call["function"][name] += text or ""
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return {"content": None if calls else "", **message}


def chat_choice(choice: Json, index: int, top: int | None) -> Json:
    ours = {**choice, "index": index, "logprobs": _chat_logprobs(choice.get("logprobs"), top)}
    if "role" in ours.get("delta", ()):
        ours["delta"] = {**ours["delta"], "content": ours["delta"].get("content") or ""}  # as the first part has it
    return ours


def text_choice(choice: Json, index: int, top: int | None, offset: int) -> Json:
    """Returns a choice of /v1/completions; `offset` is the number of characters that came before this part."""
    found = (choice.get("logprobs") or {}).get("content")
    logprobs = None if top is None or not found else _text_logprobs(found, top, offset)
    return {"index": index, "text": choice["text"], "logprobs": logprobs, "finish_reason": choice.get("finish_reason")}


def _chat_logprobs(logprobs: Json | None, top: int | None) -> Json | None:
    if not logprobs or not logprobs.get("content"):
        return None
    return {"content": [_chat_token(token, token["top_logprobs"][: top or 0]) for token in logprobs["content"]]}


def _chat_token(token: Json, alternatives: Iterable[Json]) -> Json:
    others = [{name: other[name] for name in ("token", "logprob", "bytes")} for other in alternatives]
    return {name: token[name] for name in ("token", "logprob", "bytes")} | {"top_logprobs": others}


def _text_logprobs(tokens: Sequence[Json], top: int, offset: int) -> Json:
    """Returns the older shape of /v1/completions: parallel lists."""
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token["token"])
    return {
        "tokens": [token["token"] for token in tokens],
        "token_logprobs": [token["logprob"] for token in tokens],
        "top_logprobs": [
            {other["token"]: other["logprob"] for other in token["top_logprobs"][:top]} for token in tokens
        ],
        "text_offset": offsets,
    }

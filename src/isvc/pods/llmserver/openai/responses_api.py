"""OpenAI's Responses API (`/v1/responses`): a request becomes a chat, its answer a response or a stream of events.

Nothing is kept: a conversation is what a request carries, and `previous_response_id` is refused.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from isvc.pods.llmserver.errors import BadRequest
from isvc.pods.llmserver.openai.protocol import ChatRequest

Json = dict[str, Any]
_TEXTS: Final = ("input_text", "output_text", "text")


class ResponseRequest(msgspec.Struct, kw_only=True):
    input: str | Annotated[list[Json], Meta(min_length=1)]
    model: str | None = None
    instructions: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    temperature: float | None = None
    top_p: float | None = None
    stream: bool | None = None
    tools: list[Json] | None = None
    tool_choice: str | Json | None = None
    text: Json | None = None
    previous_response_id: str | None = None
    background: bool | None = None

    def chat(self) -> ChatRequest:
        """Returns the chat that answers it. Raises BadRequest."""
        if self.previous_response_id or self.background:
            field = "previous_response_id" if self.previous_response_id else "background"
            raise BadRequest(f"{field} is not supported: this server keeps no responses", field)
        given: Json = {
            "messages": list(self._messages()),
            "model": self.model,
            "max_tokens": self.max_output_tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "stream": self.stream,
            "tools": [_chat_tool(tool) for tool in self.tools] if self.tools else None,
            "tool_choice": _chat_choice(self.tool_choice),
            "response_format": _response_format(self.text),
        }
        try:
            return msgspec.convert({name: value for name, value in given.items() if value is not None}, ChatRequest)
        except msgspec.ValidationError as error:
            raise BadRequest(str(error)) from None

    def _messages(self) -> Iterator[Json]:
        if self.instructions:
            yield {"role": "system", "content": self.instructions}
        for item in [{"role": "user", "content": self.input}] if isinstance(self.input, str) else self.input:
            match item.get("type", "message"):
                case "message":
                    yield {"role": item.get("role", "user"), "content": _plain(item.get("content"))}
                case "function_call":
                    function = {"name": item.get("name"), "arguments": item.get("arguments")}
                    call = {"id": item.get("call_id"), "type": "function", "function": function}
                    yield {"role": "assistant", "content": None, "tool_calls": [call]}
                case "function_call_output":
                    yield {"role": "tool", "tool_call_id": item.get("call_id"), "content": str(item.get("output"))}
                case other:
                    raise BadRequest(f"items of type {other} are not supported", "input")


class Response:
    """One response, from its first event to its last."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._id, self._created = f"resp_{uuid.uuid4().hex}", int(time.time())
        self._message = f"msg_{uuid.uuid4().hex}"
        self._events = 0

    def whole(self, choice: Json, usage: Json) -> Json:
        reason, message = choice.get("finish_reason"), choice["message"]
        status = "incomplete" if reason == "length" else "completed"
        output = [_function_call(call) for call in message.get("tool_calls") or ()] or [
            {**self._item(status), "content": [_text_part(message.get("content") or "")]}
        ]
        counted = {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": usage["prompt_tokens_details"]["cached_tokens"]},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        }
        why = {"reason": "max_output_tokens"} if status == "incomplete" else None
        return {**self._body(status), "output": output, "usage": counted, "incomplete_details": why}

    def opening(self) -> Iterator[Json]:
        """Yields the events before the first piece of text."""
        for kind in ("response.created", "response.in_progress"):
            yield self.event(kind, response=self._body("in_progress"))
        yield self.event(
            "response.output_item.added", output_index=0, item={**self._item("in_progress"), "content": []}
        )
        yield self._of_part("response.content_part.added", part=_text_part(""))

    def piece(self, text: str) -> Json:
        return self._of_part("response.output_text.delta", delta=text, logprobs=[])

    def closing(self, choice: Json, usage: Json) -> Iterator[Json]:
        """Yields the events after the last piece of text."""
        whole = self.whole(choice, usage)
        text = choice["message"].get("content") or ""
        yield self._of_part("response.output_text.done", text=text, logprobs=[])
        yield self._of_part("response.content_part.done", part=_text_part(text))
        for index, item in enumerate(whole["output"]):
            yield self.event("response.output_item.done", output_index=index, item=item)
        yield self.event(f"response.{whole['status']}", response=whole)

    def event(self, kind: str, **fields: Any) -> Json:
        self._events += 1
        return {"type": kind, "sequence_number": self._events - 1, **fields}

    def _of_part(self, kind: str, **fields: Any) -> Json:
        return self.event(kind, item_id=self._message, output_index=0, content_index=0, **fields)

    def _item(self, status: str) -> Json:
        return {"id": self._message, "type": "message", "role": "assistant", "status": status}

    def _body(self, status: str) -> Json:
        fixed = {"parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "error": None, "metadata": {}}
        own = {"id": self._id, "object": "response", "created_at": self._created, "status": status}
        return {**own, "model": self._model, "output": [], **fixed}


def _text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": []}


def _function_call(call: Json) -> Json:
    own = {"id": f"fc_{uuid.uuid4().hex}", "type": "function_call", "status": "completed", "call_id": call["id"]}
    return {**own, **call["function"]}


def _plain(content: Any) -> Any:
    """Returns the content of a message as chats have it."""
    if not isinstance(content, list):
        return content
    for part in content:
        if not isinstance(part, dict) or part.get("type") not in _TEXTS:
            raise BadRequest("This model takes text alone: an item has a part that is not text", "input")
    return "".join(str(part.get("text", "")) for part in content)


def _chat_tool(tool: Json) -> Json:
    if tool.get("type") != "function":
        raise BadRequest(f"tools of type {tool.get('type')} are not supported", "tools")
    return {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}


def _chat_choice(choice: str | Json | None) -> str | Json | None:
    if isinstance(choice, dict) and "name" in choice:
        return {"type": "function", "function": {"name": choice["name"]}}
    return choice


def _response_format(text: Json | None) -> Json | None:
    wanted = (text or {}).get("format")
    if not isinstance(wanted, dict) or wanted.get("type") != "json_schema":
        return wanted if isinstance(wanted, dict) else None
    return {"type": "json_schema", "json_schema": {"name": wanted.get("name"), "schema": wanted.get("schema") or {}}}

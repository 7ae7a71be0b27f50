"""The requests of OpenAI's API with vLLM's additions, checked, and what llama.cpp is asked for instead.

As in vLLM, fields that nobody knows are ignored. Fields that would change the answer and that llama.cpp has no
equivalent for are refused by name.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from isvc.pods.llmserver.errors import BadRequest
from isvc.pods.llmserver.openai.tool_calls import required_call

Json = dict[str, Any]
Positive = Annotated[int, Meta(ge=1, le=2**31 - 1)]
TokenId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Inputs = str | list[Any]

_MOST_INPUTS = 2048
_LARGEST_SCHEMA = 5000
_DEFAULT_COMPLETION_TOKENS = 16

_UNSUPPORTED = (
    "allowed_token_ids",
    "bad_words",
    "echo",
    "functions",
    "guided_choice",
    "guided_grammar",
    "guided_regex",
    "prompt_logprobs",
    "stop_token_ids",
    "suffix",
    "truncate_prompt_tokens",
    "use_beam_search",
)


class StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class Sampling(msgspec.Struct, kw_only=True):
    """What chats and completions have in common."""

    model: str | None = None
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: str | Annotated[list[str], Meta(max_length=128)] | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: Positive | None = None
    temperature: Annotated[float, Meta(ge=0, le=100)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    top_k: Annotated[int, Meta(ge=-1, le=2**31 - 1)] | None = None
    min_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    frequency_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    presence_penalty: Annotated[float, Meta(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Meta(gt=0, le=100)] | None = None
    logit_bias: Annotated[dict[str, Annotated[float, Meta(ge=-100, le=100)]], Meta(max_length=1024)] | None = None
    ignore_eos: bool | None = None
    response_format: Json | None = None
    guided_json: Any = None
    structured_outputs: Json | None = None

    @property
    def include_usage(self) -> bool:
        return bool(self.stream_options and self.stream_options.include_usage)

    def sampling(self) -> Json:
        """Returns what was given under llama.cpp's names."""
        given: Json = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": None if self.top_k is None else max(0, self.top_k),
            "min_p": self.min_p,
            "frequency_penalty": self.frequency_penalty,
            "presence_penalty": self.presence_penalty,
            "repeat_penalty": self.repetition_penalty,
            "logit_bias": self.logit_bias,
            "ignore_eos": self.ignore_eos,
            "stop": [self.stop] if isinstance(self.stop, str) else self.stop,
            "max_tokens": self.max_tokens,
            "seed": None if self.seed is None else self.seed % 2**32,
        }
        return {name: value for name, value in given.items() if value is not None}

    def schema(self) -> Any:
        """Returns the JSON schema that the answer has to fit, if one is asked for."""
        schema = self._schema()
        _check_size(schema, "response_format")
        return schema

    def _schema(self) -> Any:
        guided = (self.structured_outputs or {}).get("json", self.guided_json)
        if guided is not None:
            return _parse(guided, "guided_json") if isinstance(guided, str) else guided
        match (self.response_format or {}).get("type"):
            case "json_object":
                return {"type": "object"}
            case "json_schema":
                return _dict((self.response_format or {}).get("json_schema")).get("schema", {})
            case None | "text":
                return None
            case other:
                raise BadRequest(f"response_format {other} is not supported", "response_format")


class ChatRequest(Sampling, kw_only=True):
    messages: Annotated[list[Json], Meta(min_length=1)]
    max_completion_tokens: Positive | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None
    tools: list[Json] | None = None
    tool_choice: str | Json | None = None
    parallel_tool_calls: bool | None = None
    chat_template_kwargs: Json | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None

    def llama(self) -> Json:
        for message in self.messages:
            _check_message(message)
        _check_size(self.tools, "tools")
        required = required_call(self.tools, self.tool_choice)
        body: Json = {"messages": self.messages, **self.sampling()}
        if self.max_completion_tokens is not None:
            body["max_tokens"] = self.max_completion_tokens
        if self.logprobs:
            body |= {"logprobs": True, "top_logprobs": max(1, self.top_logprobs or 0)}
        for name in ("tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs", *_CONTINUATION):
            if (value := getattr(self, name)) is not None:
                body[name] = value
        schema = self.schema()
        if required is not None:
            schema, body["tool_choice"] = required.schema, "none"
        if schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        return body


_CONTINUATION = ("add_generation_prompt", "continue_final_message")


class CompletionRequest(Sampling, kw_only=True):
    prompt: Inputs
    logprobs: Annotated[int, Meta(ge=0, le=20)] | None = None

    def llama(self) -> Json:
        body: Json = {"max_tokens": _DEFAULT_COMPLETION_TOKENS, **self.sampling()}
        if self.logprobs is not None:
            body["logprobs"] = max(1, self.logprobs)
        if (schema := self.schema()) is not None:
            body["json_schema"] = schema
        return body


class EmbeddingRequest(msgspec.Struct, kw_only=True):
    input: Inputs
    model: str | None = None
    encoding_format: str | None = None
    dimensions: Positive | None = None

    def check(self) -> None:
        if self.encoding_format not in (None, "float", "base64"):
            raise BadRequest("encoding_format is float or base64", "encoding_format")
        if self.dimensions is not None:
            raise BadRequest("dimensions is not supported: embeddings have the width of the model", "dimensions")


class TokenizeRequest(msgspec.Struct, kw_only=True):
    model: str | None = None
    prompt: str | None = None
    messages: list[Json] | None = None
    add_special_tokens: bool = True
    return_token_strs: bool | None = None


class DetokenizeRequest(msgspec.Struct, kw_only=True):
    tokens: list[TokenId]
    model: str | None = None


T = TypeVar("T", bound=msgspec.Struct)
_PLACE = re.compile(r" - at `\$\.?([^`]*)`$")


def decode(body: bytes, kind: type[T]) -> T:
    """Returns a request, or BadRequest that names the field."""
    fields = _parse(body)
    if not isinstance(fields, dict):
        raise BadRequest("The body is not a JSON object")
    if issubclass(kind, Sampling):
        _refuse_unsupported(fields)
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        place = _PLACE.search(str(error))
        raise BadRequest(str(error).replace("`$.", "`"), place[1] if place else None) from None


def _parse(text: bytes | str, field: str | None = None) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadRequest(f"{field or 'The body'} is not valid JSON: {error}", field) from None


def inputs(value: Inputs, field: str) -> list[str | list[int]]:
    """Returns a text, a list of texts, a list of token ids or a list of such lists: always a list of inputs."""
    if isinstance(value, str):
        return [value]
    if value and all(map(_is_token, value)):
        return [value]
    if not value or len(value) > _MOST_INPUTS:
        raise BadRequest(f"{field} takes 1 to {_MOST_INPUTS} inputs, not {len(value)}", field)
    for item in value:
        if not isinstance(item, str) and not (isinstance(item, list) and item and all(map(_is_token, item))):
            raise BadRequest(f"{field} is a text, a list of token ids, or a list of either", field)
    return value


def _is_token(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _refuse_unsupported(fields: Json) -> None:
    for name in _UNSUPPORTED:
        if fields.get(name):
            raise BadRequest(f"{name} is not supported by this server", name)
    best_of = fields.get("best_of")
    if best_of not in (None, 1, fields.get("n")):
        raise BadRequest("best_of is not supported by this server", "best_of")
    if others := [name for name, value in _dict(fields.get("structured_outputs")).items() if value and name != "json"]:
        raise BadRequest(f"structured_outputs.{others[0]} is not supported by this server", "structured_outputs")


def _check_size(schema: Any, field: str) -> None:
    """Refuses a schema for which llama.cpp would make a grammar for minutes, while nobody else is answered."""
    seen, pending = 0, [schema]
    while pending:
        value = pending.pop()
        seen += 1
        if isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
        if seen + len(pending) > _LARGEST_SCHEMA:
            raise BadRequest(f"{field} has more than {_LARGEST_SCHEMA} values", field)


def _check_message(message: Json) -> None:
    if not isinstance(message.get("role"), str):
        raise BadRequest("Every message needs a role", "messages")
    content = message.get("content")
    if isinstance(content, list):
        for part in content:
            if _dict(part).get("type") != "text":
                raise BadRequest("This model takes text alone: a message has a part that is not text", "messages")
    elif content is not None and not isinstance(content, str):
        raise BadRequest("The content of a message is a text or a list of parts", "messages")


def _dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}

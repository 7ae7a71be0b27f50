"""Calls of tools that a request insists on (`tool_choice`): the answer is made to fit a schema of such a call.

llama.cpp leaves tools to the template of a model, and small models have none that knows of them. A grammar works with
every model, as guided decoding does in vLLM.
"""

from __future__ import annotations

import uuid
from typing import Any

import orjson

from isvc.pods.llmserver.errors import BadRequest

Json = dict[str, Any]
_CHOICES = ("none", "auto", "required")


class RequiredCall:
    def __init__(self, tools: list[Json]) -> None:
        """The model calls one of these tools, whatever it would rather say."""
        self._tools = tools
        self._written: dict[int, str] = {}

    @property
    def schema(self) -> Json:
        return {"anyOf": [_call_schema(tool["function"]) for tool in self._tools]}

    def translate(self, choice: Json, index: int) -> Json | None:
        """Returns the choice with a call in the place of its text; None for the parts of a stream before the last."""
        field = "delta" if "delta" in choice else "message"
        text = self._written[index] = self._written.get(index, "") + (choice[field].get("content") or "")
        if field == "delta" and not choice.get("finish_reason"):
            return None
        try:
            call = orjson.loads(text)
            name, arguments = str(call["name"]), orjson.dumps(call["parameters"]).decode()
        except (orjson.JSONDecodeError, KeyError, TypeError):
            return choice  # it was cut off: that is its finish_reason
        function = {"name": name, "arguments": arguments}
        made: Json = {"id": f"call_{uuid.uuid4().hex}", "type": "function", "function": function}
        if field == "delta":
            made["index"] = 0
        return {
            **choice,
            field: {"role": "assistant", "content": None, "tool_calls": [made]},
            "finish_reason": "tool_calls",
        }


def required_call(tools: list[Json] | None, choice: str | Json | None) -> RequiredCall | None:
    """Returns what the choice insists on; None where the model is free to answer. Raises BadRequest."""
    if choice is None or choice in ("none", "auto"):
        return None
    known = [tool for tool in tools or () if isinstance((tool.get("function") or {}).get("name"), str)]
    if not known:
        raise BadRequest("tools are missing, of which tool_choice wants one to be called", "tools")
    if choice == "required":
        return RequiredCall(known)
    function = choice.get("function") if isinstance(choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if name is None:
        raise BadRequest(f"tool_choice is one of {', '.join(_CHOICES)}, or names a function", "tool_choice")
    if not (named := [tool for tool in known if tool["function"]["name"] == name]):
        raise BadRequest(f"tool_choice names the function {name}, which is none of the tools", "tool_choice")
    return RequiredCall(named)


def _call_schema(function: Json) -> Json:
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    properties = {"name": {"type": "string", "enum": [function["name"]]}, "parameters": parameters}
    return {
        "type": "object",
        "properties": properties,
        "required": ["name", "parameters"],
        "additionalProperties": False,
    }

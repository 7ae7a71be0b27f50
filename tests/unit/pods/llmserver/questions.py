"""What the model is asked, and with which tools."""

from __future__ import annotations

from typing import Any

KEY = "a-key"
QUESTION = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]


def tool(name: str, argument: str, values: list[str]) -> dict[str, Any]:
    properties = {argument: {"type": "string", "enum": values}}
    parameters = {"type": "object", "properties": properties, "required": [argument], "additionalProperties": False}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


TOOLS = [tool("look_up_weather", "city", ["Paris", "Rome"]), tool("send_mail", "to", ["alice", "bob"])]

"""A configuration as a template: the text of its JSON, to be filled in for many services.

Where every block begins and ends in one string, what is filled in has Go's order and the right types, as the template
had. To write it down once more, as Go would, is then needless; it was most of the work.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from isvc.kube.objects import Object
from isvc.serving.llm.functions import FUNCTIONS
from isvc.serving.llm.gojson import text_of
from isvc.serving.templates import is_template
from isvc.serving.templates.values import Type

_ACTION = re.compile(r"\{\{.*?\}\}")


_SIGN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Template:
    text: str
    is_in_strings: bool  # every block begins and ends in one string
    syntax: tuple[int, int]

    @classmethod
    def of(cls, config: Object, kind: Type) -> Template:
        """Raises `DecodeError` for a configuration that is not of its type."""
        text = text_of(config, kind)
        return cls(text, _is_in_strings(config), _syntax(_ACTION.sub("…", text)))

    def keeps_its_form(self, filled: str) -> bool:
        """Returns whether filling in changed only texts: no string begins or ends elsewhere, no field became empty."""
        return self.is_in_strings and _syntax(filled) == self.syntax


def _syntax(text: str) -> tuple[int, int]:
    """Returns how many quotes begin or end a string, and how many fields are empty texts, which Go may leave out."""
    return text.count('"') - text.count('\\"'), text.count(':""')


def _is_in_strings(data: Any) -> bool:
    if isinstance(data, dict):
        return all("{{" not in key and _is_in_strings(each) for key, each in data.items())
    if isinstance(data, list):
        return all(map(_is_in_strings, data))
    return not isinstance(data, str) or "{{" not in data or is_template(data, FUNCTIONS)


def path_at(text: str, position: int) -> str:
    """Returns the path of the value that the position is in."""
    steps: list[str | int] = []
    last = ""
    for match in _SIGN.finditer(text):
        sign = match[0]
        if match.end() > position and sign[0] == '"':
            break
        if sign == "[":
            steps.append(0)
        elif sign == "{":
            steps.append("")
        elif sign in "]}" and steps:
            steps.pop()
        elif sign == "," and steps and isinstance(steps[-1], int):
            steps[-1] += 1
        elif sign == ":" and steps:
            steps[-1] = last
        last = sign[1:-1] if sign[0] == '"' else last
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" if step else "" for step in steps)
    return path.lstrip(".")


def action_at(text: str, position: int) -> tuple[int, str]:
    """Returns where the template action begins that the position is in, and the action, or its part in the string."""
    start = max(text.rfind("{{", 0, position + 2), 0)
    within = re.split(r'(?<!\\)"', text[start:], maxsplit=1)[0]
    action, closing, _ = within.partition("}}")
    return start, action.replace(r"\"", '"') + closing

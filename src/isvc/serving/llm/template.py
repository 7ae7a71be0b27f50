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
        """Whether filling in changed nothing but texts: no string begins or ends elsewhere, no field became empty."""
        return self.is_in_strings and _syntax(filled) == self.syntax


def _syntax(text: str) -> tuple[int, int]:
    """How many quotes begin or end a string, and how many fields are empty texts, which Go may leave out."""
    return text.count('"') - text.count('\\"'), text.count(':""')


def _is_in_strings(data: Any) -> bool:
    if isinstance(data, dict):
        return all("{{" not in key and _is_in_strings(each) for key, each in data.items())
    if isinstance(data, list):
        return all(map(_is_in_strings, data))
    return not isinstance(data, str) or "{{" not in data or is_template(data, FUNCTIONS)

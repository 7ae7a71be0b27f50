"""Go templates: runtimes, domains and presets are written in them, so here they mean what they mean in Go.

Runtimes carry placeholders such as `{{.Name}}`, the ingress settings carry templates of domains and paths, and the
presets of LLMInferenceServices are one template each. Text is cut into tokens (`lexer`), parsed (`parser`) and filled
in (`execution`) with values that have Go's types (`values`). Complex numbers alone are left out, and refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from isvc.serving.templates import nodes
from isvc.serving.templates.errors import TemplateError
from isvc.serving.templates.execution import Execution
from isvc.serving.templates.functions import BUILTIN, Function, escape_html
from isvc.serving.templates.parser import parse
from isvc.serving.templates.values import Fields, Value, typed_value

__all__ = ["Fields", "TemplateError", "fill", "is_template", "render"]

_LONGEST_REMEMBERED = 2**15
_FIELD = re.compile(r"\{\{ *\.([A-Za-z]\w*) *\}\}", re.ASCII)


def render(template: str, values: Mapping[str, Any], *, missing: str = "<no value>", escape: bool = False) -> str:
    """Fills the template in. `missing` stands for absent map keys; `escape` escapes values as Go's html/template."""
    if (text := _fill_plain(template, values, escape=escape)) is not None:
        return text
    parsed = _parse(template)
    return Execution(parsed, BUILTIN, strict=False, missing=missing, escape=escape).run(typed_value(values))


def fill(template: str, root: Value, functions: Mapping[str, Function], *, strict: bool = True) -> str:
    """Fills the template in with typed values and functions beside the built-in ones.

    An absent map key is an error, unless `strict` is False: then it is the empty text.
    """
    known = {**BUILTIN, **functions}
    parsed = _parse(template, frozenset(functions))
    return Execution(parsed, known, strict=strict, missing="<no value>" if strict else "", escape=False).run(root)


def is_template(text: str, functions: Iterable[str]) -> bool:
    """Returns whether the text is a template by itself: no block begins or ends elsewhere."""
    try:
        parse(text, {*BUILTIN, *functions})
    except TemplateError:
        return False
    return True


def _fill_plain(template: str, values: Mapping[str, Any], *, escape: bool) -> str | None:
    """Returns a template of nothing but text and fields that hold text, filled in; None for any other."""
    pieces = list(_pieces(template)) if len(template) <= _LONGEST_REMEMBERED else []
    for index in range(1, len(pieces), 2):
        value = values.get(pieces[index])
        if type(value) is not str:
            return None
        pieces[index] = escape_html(value) if escape else value
    return "".join(pieces) if pieces else None


@lru_cache(maxsize=256)
def _pieces(template: str) -> tuple[str, ...]:
    """Returns text and names of fields in turn; nothing if the template holds more than that."""
    pieces = tuple(_FIELD.split(template))
    return () if any("{{" in text for text in pieces[::2]) else pieces


def _parse(template: str, functions: frozenset[str] = frozenset()) -> nodes.Template:
    """Returns the tree of a template. Long ones are not remembered: strangers could fill the memory with them."""
    read = _parse_once if len(template) <= _LONGEST_REMEMBERED else _parse_once.__wrapped__
    return read(template, functions)


@lru_cache(maxsize=64)
def _parse_once(template: str, functions: frozenset[str]) -> nodes.Template:
    return parse(template, {*BUILTIN, *functions})

"""Go templates: runtimes, domains and presets are written in them, so here they mean what they mean in Go.

Runtimes carry placeholders such as `{{.Name}}`, the ingress settings carry templates of domains and paths, and the
presets of LLMInferenceServices are one template each. Text is cut into tokens (`lexer`), parsed (`parser`) and filled
in (`execution`) with values that have Go's types (`values`). Complex numbers alone are left out, and refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from isvc.serving.templates import nodes
from isvc.serving.templates.errors import TemplateError
from isvc.serving.templates.execution import Execution
from isvc.serving.templates.functions import BUILTIN, Function
from isvc.serving.templates.parser import parse
from isvc.serving.templates.values import Fields, Value, typed

__all__ = ["Fields", "TemplateError", "fill", "render"]


def render(template: str, values: Mapping[str, Any], *, missing: str = "<no value>", escape: bool = False) -> str:
    """Fill the template in. `missing` stands for absent map keys; `escape` escapes values as Go's html/template."""
    parsed = _parsed(template)
    return Execution(parsed, BUILTIN, strict=False, missing=missing, escape=escape).run(typed(values))


def fill(template: str, root: Value, functions: Mapping[str, Function], *, strict: bool = True) -> str:
    """Fill the template in with typed values and functions beside the built-in ones.

    An absent map key is an error, unless `strict` is False: then it is the empty text.
    """
    known = {**BUILTIN, **functions}
    parsed = _parsed(template, frozenset(functions))
    return Execution(parsed, known, strict=strict, missing="<no value>" if strict else "", escape=False).run(root)


@lru_cache(maxsize=256)
def _parsed(template: str, functions: frozenset[str] = frozenset()) -> nodes.Template:
    return parse(template, {*BUILTIN, *functions})

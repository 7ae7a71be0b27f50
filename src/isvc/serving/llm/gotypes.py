"""LLMInferenceServices as Go sees them: the names, order and types of the fields that presets ask for.

`tools/llm-types` writes the table and says how to read it. It is parsed when the first preset is rendered.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from isvc.serving.llm.methods import METHODS
from isvc.serving.templates.values import BOOL, FLOAT64, INT, INT32, INT64, STRING, UINT16, Field, Type

_BASIC = {each.name: each for each in (BOOL, STRING, INT, INT32, INT64, UINT16, FLOAT64)}
_OMIT = {"": "", "?": "empty", "!": "zero", "?!": "zero"}


@cache
def go_type(name: str) -> Type:
    """A named type such as `llm.LLMInferenceService`; always the same object."""
    return _table()[name]


@cache
def _table() -> dict[str, Type]:
    lines = resources.files("isvc.serving.llm").joinpath("data/types.txt").read_text().splitlines()
    headers = [line.split(" ", 1) for line in lines if not line.startswith(" ")]
    types = {name: Type(name, "struct", methods=METHODS.get(name, {})) for name, *_ in headers}
    known = _Known(types)
    for name, *shape in headers:
        if shape:
            _shape(types[name], shape[0], known)
    struct, fields = "", dict[str, list[Field]]()
    for line in lines:
        if not line.startswith(" "):
            struct = line
            continue
        fields.setdefault(struct, []).append(_field(line, known))
    for name, found in fields.items():
        types[name].fields = tuple(found)
    return types


def _shape(named: Type, shape: str, known: _Known) -> None:
    if shape.startswith("scalar "):
        named.scalar = shape.removeprefix("scalar ")
        return
    made_of = known[shape]
    named.kind, named.elem, named.key = made_of.kind, made_of.elem, made_of.key


def _field(line: str, known: _Known) -> Field:
    name, key, kind = line.split()
    bare = key.rstrip("?!")
    return Field(name.lstrip("+"), "" if bare == "-" else bare, known[kind], name[0] == "+", _OMIT[key[len(bare) :]])


class _Known(dict[str, Type]):
    """Types by what they are called, those without a name of their own made when they are first asked for."""

    def __init__(self, named: dict[str, Type]) -> None:
        super().__init__(_BASIC | named)

    def __missing__(self, text: str) -> Type:
        if text.startswith("*"):
            made = self[text[1:]].pointer()
        elif text.startswith("[]"):
            made = Type(text, "slice", self[text[2:]])
        else:
            key, elem = text.removeprefix("map[").split("]", 1)
            made = Type(text, "map", self[elem], self[key])
        self[text] = made
        return made

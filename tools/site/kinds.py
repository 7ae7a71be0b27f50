"""Reference of our kinds: every field of ours with its type and description, asked from the types."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final, get_args, get_origin, get_type_hints

import msgspec
from tools.site.markdown import table

from isvc.api.fields import REQUIRED, Definition, Inline, Spec
from isvc.api.kinds import KINDS
from isvc.api.meta import Kind, ObjectMeta
from isvc.api.schema import field_notes, unwrap

_SCALARS: Final = {str: "string", int: "integer", float: "number", bool: "boolean", Any: "any"}


def kinds() -> str:
    sections = []
    for row in KINDS:
        short = f", `{row.short_name}` for short" if row.short_name else ""
        scope = "In a namespace" if row.resource.namespaced else "In the whole cluster"
        also = f" Also served as `{'`, `'.join(row.older)}`, converted by a webhook." if row.older else ""
        heading = f"## {row.resource.kind}\n\n`{row.resource.api_version}`{short}. {scope}.{also}\n"
        sections.append(heading + "\n".join(_type(each) for each in parts(row.api_type)))
    return "\n".join(sections)


def parts(kind: type[Spec]) -> list[type[Spec]]:
    """The type and those that it contains, each once, in the order in which they are met."""
    found: dict[type[Spec], None] = {}

    def visit(hint: Any) -> None:
        hint, _ = unwrap(hint)
        if isinstance(hint, type) and issubclass(hint, Spec) and hint not in {*found, ObjectMeta}:
            found[hint] = None
            for each in get_type_hints(hint, include_extras=True).values():
                visit(each)
        for each in get_args(hint):
            visit(each)

    visit(kind)
    return list(found)


def _type(kind: type[Spec]) -> str:
    text = " ".join(inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].split())
    title = "" if issubclass(kind, Kind) else f"\n### {kind.__name__}\n"
    return f"{title}\n{text}\n\n{table(('field', 'type', 'is'), _fields(kind))}"


def _fields(kind: type[Spec]) -> Iterator[tuple[str, str, str]]:
    hints, notes = get_type_hints(kind, include_extras=True), field_notes(kind)
    for info in msgspec.structs.fields(kind):
        hint, marks = unwrap(hints[info.name])
        inline = next((mark for mark in marks if isinstance(mark, Inline)), None)
        if inline is not None:
            fields = ", ".join(f"`{name}`" for name in inline.only) if inline.only else "all fields"
            yield "…", _short(inline.definition), f"Beside these: {fields} of Kubernetes' {_short(inline.definition)}."
        elif info.name in notes:
            required = " (required)" if REQUIRED in marks else ""
            yield f"`{info.encode_name}`", _written(hint, marks), notes[info.name] + required


def _written(hint: Any, marks: tuple[Any, ...]) -> str:
    if named := next((mark for mark in marks if isinstance(mark, Definition)), None):
        return _short(named.name)
    if isinstance(hint, type) and issubclass(hint, Spec):
        return hint.__name__
    if get_origin(hint) is list:
        return f"list of {_written(*unwrap(get_args(hint)[0]))}"
    if get_origin(hint) is dict:
        return f"map to {_written(*unwrap(get_args(hint)[1]))}"
    return _SCALARS.get(hint, "object")


def _short(name: str) -> str:
    return name.replace("/", ".").rpartition(".")[2]

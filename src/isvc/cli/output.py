"""How commands print what they list: a table, or the objects themselves with -o."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from isvc.kube.objects import Object

JSON, YAML, WIDE, NAME = "json", "yaml", "wide", "name"
_GAP = "   "


def output_option(*forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Adds -o as the argument `output`; all forms, unless some are named."""
    chosen = forms or (JSON, YAML, WIDE, NAME)
    return click.option("-o", "--output", type=click.Choice(chosen), metavar="|".join(chosen), help="Output format.")


def print_remarks(warnings: Iterable[object], problems: Iterable[object]) -> None:
    """Prints warnings and problems to stderr, beside what is printed."""
    from isvc.kube.masking import plain_text

    for warning in warnings:
        click.echo(plain_text(f"Warning: {warning}"), err=True)
    for problem in problems:
        click.echo(plain_text(f"Error: {problem}"), err=True)


def print_value(value: Any, form: str) -> None:
    """Prints one value as JSON or YAML."""
    if form == JSON:
        import orjson

        click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    else:
        from isvc.kube.go_yaml import dump

        click.echo(dump(value), nl=False)


def print_objects(objects: Sequence[Object], form: str) -> None:
    """Prints objects as kubectl does: one alone, several as a List; `name` gives kind/name lines."""
    if form == NAME:
        for each in objects:
            click.echo(qualified_name(each))
    elif len(objects) == 1:
        print_value(objects[0], form)
    else:
        print_value({"apiVersion": "v1", "kind": "List", "items": list(objects)}, form)


def qualified_name(obj: Object) -> str:
    """`inferenceservice.serving.kserve.io/iris`, which kubectl takes as an argument."""
    group, _, _ = str(obj["apiVersion"]).rpartition("/")
    kind = str(obj["kind"]).lower()
    return f"{kind}.{group}/{obj['metadata']['name']}" if group else f"{kind}/{obj['metadata']['name']}"


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], **colours: Callable[[str], str | None]) -> None:
    """Prints columns as wide as what is in them, without secrets; the last one may be of any length.

    `colours` say of a column, by its name, in which colour a text stands there.
    """
    from isvc.kube.masking import plain_text

    lines = [tuple(map(plain_text, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *lines, strict=True)]
    click.echo(_GAP.join(map(str.ljust, header, widths)).rstrip())
    for line in lines:
        cells = [
            click.style(cell, colours[name](cell)) + " " * (width - len(cell)) if name in colours else cell.ljust(width)
            for name, cell, width in zip(header, line, widths, strict=True)
        ]
        click.echo(_GAP.join(cells).rstrip())

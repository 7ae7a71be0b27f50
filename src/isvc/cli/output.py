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
    from isvc.kube.masking import mask_text

    for warning in warnings:
        click.echo(mask_text(f"Warning: {warning}"), err=True)
    for problem in problems:
        click.echo(mask_text(f"Error: {problem}"), err=True)


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


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Prints columns as wide as what is in them, without secrets; the last one may be of any length."""
    from isvc.kube.masking import mask_text

    lines = [tuple(header), *(tuple(map(mask_text, row)) for row in rows)]
    widths = [max(len(click.unstyle(cell)) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell + " " * (width - len(click.unstyle(cell))) for cell, width in zip(line, widths, strict=True)]
        click.echo(_GAP.join(cells).rstrip())

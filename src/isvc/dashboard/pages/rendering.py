"""From what a page shows to HTML, or to JSON for programs: the same values in both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

import jinja2
import orjson
from aiohttp import web

from isvc.apiserver.tables.columns import duration, since

JSON: Final = "json"
_NUMBERS: Final = re.compile(r"\[(\n[-+.,0-9eE\s]*)\]")  # no text has the end of a line in it
EDITS: Final = web.RequestKey("edits", bool)  # whether services can be edited
CSRF: Final = web.RequestKey("csrf", str)  # the value that forms of its reader have to carry


@dataclass(frozen=True, slots=True)
class Page:
    """`shown` is a frozen value: the template's, and the JSON. `around` is for the template alone."""

    template: str
    title: str
    shown: Any
    status: int = 200
    around: dict[str, Any] = field(default_factory=dict)


def respond(request: web.Request, page: Page) -> web.Response:
    if wants_json(request):
        body = orjson.dumps(page.shown, option=orjson.OPT_INDENT_2)
        return web.Response(body=body, status=page.status, content_type="application/json")
    site = {"path": request.path, "csrf": request.get(CSRF, ""), "allow_edit": request.get(EDITS, False)}
    text = render(page.template, title=page.title, shown=page.shown, **site, **page.around)
    return web.Response(text=text, status=page.status, content_type="text/html")


def wants_json(request: web.Request) -> bool:
    asked = request.query.get("output")
    return asked == JSON or (asked is None and request.headers.get("Accept", "").startswith("application/json"))


def render(template: str, **values: Any) -> str:
    return _environment().get_template(template).render(values)


def load_templates() -> None:
    """Compiles all of them, so that no reader has to wait for it."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


def pretty(value: Any) -> str:
    """Formats JSON to read: indented, but rows of numbers on one line."""
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    return _NUMBERS.sub(lambda row: f"[{' '.join(row[1].split())}]", text)


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("isvc.dashboard"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["since"] = since
    environment.filters["duration"] = duration
    environment.filters["json"] = pretty
    return environment

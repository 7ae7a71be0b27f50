"""Runs in place of Knative's event_display: prints each CloudEvent that it gets, so that `kubectl logs` shows them.

Attributes come as `ce-` headers beside the data, or with it in one JSON document.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_MAX_BODY = 64 << 20


class Display(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > _MAX_BODY:
            self._answer(413 if length.isdigit() else 411)
            return
        event = describe({name.lower(): value for name, value in self.headers.items()}, self.rfile.read(int(length)))
        if event:
            sys.stdout.write(event)
            sys.stdout.flush()
        self._answer(202 if event else 400)

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Events alone are shown."""


def describe(headers: Mapping[str, str], body: bytes) -> str:
    """Returns an event as event_display prints it; empty for what is none. Header names are in lower case."""
    attributes: dict[str, object] = {name[3:]: value for name, value in headers.items() if name.startswith("ce-")}
    data = _parse(body)
    if headers.get("content-type", "").startswith("application/cloudevents+json") and isinstance(data, dict):
        attributes = {name: value for name, value in data.items() if name != "data"}
        data = data.get("data")
    elif "content-type" in headers:
        attributes["datacontenttype"] = headers["content-type"]
    if "type" not in attributes:
        return ""
    lines = [f"  {name}: {value}" for name, value in sorted(attributes.items())]
    text = data if isinstance(data, str) else json.dumps(data, indent=2, ensure_ascii=False)
    indented = "\n".join(f"  {line}" for line in text.splitlines())
    return "\n".join(["☁️  cloudevents.Event", "Context Attributes,", *lines, "Data,", indented, ""])


def _parse(body: bytes) -> object:
    text = body.decode("utf-8", "replace")
    try:
        return json.loads(text)
    except ValueError:
        return text


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Display).serve_forever()

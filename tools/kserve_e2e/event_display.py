"""A sink that prints the CloudEvents it gets, in the place of Knative's event_display in the tests of the logger."""

from __future__ import annotations

import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Display(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        sys.stdout.write(f"{self.headers}\n{body.decode('utf-8', 'replace')}\n")
        sys.stdout.flush()
        self._answer()

    def _answer(self) -> None:
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Display).serve_forever()

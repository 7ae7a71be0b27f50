"""Runs in place of the servers that predict how long requests take: says that it is well, and does no more.

On a cluster the endpoint picker asks them. Here the gateway picks itself, by what the model servers report.
"""

from __future__ import annotations

import json
import logging
import os
from http.server import BaseHTTPRequestHandler, HTTPServer

log = logging.getLogger("isvc.latency_predictor")


class Well(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        known = self.path in ("/healthz", "/readyz")
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Probes are not worth a line."""


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    wanted = os.environ.get("PREDICT_PORT", "8000")
    port = json.loads(os.environ.get("ISVC_PORTS", "{}")).get(wanted, int(wanted))
    log.warning(
        "latencies are not predicted on this machine: its gateway picks endpoints by queue, cache use and prefix, and"
        " plugins of the scheduler that go by predictions have no effect"
    )
    HTTPServer(("127.0.0.1", port), Well).serve_forever()


if __name__ == "__main__":
    main()

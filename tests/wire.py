"""One API server as a plain HTTP client sees it: what goes over the wire is what is compared."""

from __future__ import annotations

import http.client
import json
import ssl
import time
from typing import Any
from urllib.parse import urlsplit

JSON = "application/json"
Answer = tuple[int, Any]

IDLE = 5.0  # seconds after which a server may be closing a connection


class Wire:
    def __init__(self, url: str, token: str) -> None:
        self.host = urlsplit(url).netloc
        self.headers = {
            "Authorization": f"Bearer {token}",
            "User-Agent": "differential/1",
        }
        self._connection = self._connect()
        self._used = time.monotonic()
        #: The warnings that came with the last answer.
        self.warnings: list[str] = []

    def _connect(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, context=ssl._create_unverified_context(), timeout=60)

    def ask(self, method: str, path: str, body: Any = None, content_type: str = JSON, accept: str = JSON) -> Answer:
        sent = None if body is None else json.dumps(body, separators=(",", ":"))
        if time.monotonic() - self._used > IDLE:
            self._connection.close()  # the next request opens it again
        headers = {**self.headers, "Content-Type": content_type, "Accept": accept}
        try:
            self._connection.request(method, path, sent, headers)
        except OSError:  # the server ended meanwhile: what could not be sent may be sent again
            self._connection.close()
            self._connection.request(method, path, sent, headers)
        response = self._connection.getresponse()
        content = response.read()
        self._used = time.monotonic()
        self.warnings = response.headers.get_all("Warning") or []
        is_json = response.headers.get_content_type() == "application/json"
        return response.status, json.loads(content) if is_json else {"text": content.decode()}

    def watch(self, path: str, version: str, last: str) -> list[Any]:
        """Events from a version on, up to the one about the object called `last`."""
        connection = self._connect()
        connection.request(
            "GET", f"{path}?watch=true&resourceVersion={version}&timeoutSeconds=60", headers=self.headers
        )
        response = connection.getresponse()
        events: list[Any] = []
        try:
            while line := response.readline():
                event = json.loads(line)
                if event["object"].get("metadata", {}).get("name") == last:
                    return events
                events.append(event)
        finally:
            connection.close()
        raise AssertionError(f"the watch of {path} ended before {last} was seen")

    def close(self) -> None:
        self._connection.close()

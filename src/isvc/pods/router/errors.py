"""What keeps a graph from answering, as the router reports it."""

from __future__ import annotations

import orjson


class RoutingError(Exception):
    """The graph has no answer for a request."""

    def __init__(self, cause: str, status: int = 500) -> None:
        super().__init__(cause)
        self.status = status

    def body(self) -> bytes:
        return orjson.dumps({"error": "Failed to process request", "cause": str(self)})

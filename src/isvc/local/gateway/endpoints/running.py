"""Counts the requests that endpoints are answering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from isvc.local.gateway.endpoints.endpoint import Endpoint


class Running(Counter[Endpoint]):
    """Endpoints without requests are forgotten: their number is without end."""

    def end(self, endpoint: Endpoint) -> None:
        """Counts a request as answered."""
        self[endpoint] -= 1
        if not self[endpoint]:
            del self[endpoint]

    @contextmanager
    def counted(self, endpoint: Endpoint) -> Iterator[None]:
        """Counts a request for as long as the context lasts."""
        self[endpoint] += 1
        try:
            yield
        finally:
            self.end(endpoint)

"""Where a server listens, and how many requests it is answering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from isvc.kube.gourl import url_host


class Endpoint(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{url_host(self.host)}:{self.port}"


class Running(Counter[Endpoint]):
    """Counts the requests that endpoints are answering; those without any are forgotten: they are without number."""

    def end(self, endpoint: Endpoint) -> None:
        """Counts a request as answered."""
        self[endpoint] -= 1
        if not self[endpoint]:
            del self[endpoint]

    @contextmanager
    def count(self, endpoint: Endpoint) -> Iterator[None]:
        """Counts a request for as long as the context lasts."""
        self[endpoint] += 1
        try:
            yield
        finally:
            self.end(endpoint)

"""Where requests wait that no endpoint can take: what the processor asks of those who know how long."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from isvc.local.gateway.endpoints.endpoint import Endpoint


@dataclass(eq=False)
class Unavailable(Exception):
    """No endpoint can take a request; the words go to the client."""

    reason: str
    status: int = 503
    has_waited: bool = False  # for a pod, whose state says why none came


class Line(Protocol):
    """The requests for somebody who may have no pods, or pods that take only so many requests at a time."""

    def admit(self) -> AbstractAsyncContextManager[Endpoint]:
        """Waits for an endpoint that counts the request as running there meanwhile. Raises Unavailable."""
        ...

    @property
    def is_limited(self) -> bool:
        """Returns whether it matters which endpoint takes a request."""
        ...

"""Waiting at the start for what the cluster does not provide yet: an API server, a namespace, a right."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from isvc.kube.errors import ApiError
from isvc.toolkit.clock import Clock
from isvc.toolkit.failure import ClusterError, ConfigError

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 10.0


async def retry(what: str, step: Callable[[], Awaitable[T]], clock: Clock) -> T:
    """Repeats a step until the cluster lets it succeed. What is waited for, and why, is logged when the reason changes.

    A mistake in our own configuration is raised: waiting does not mend it.
    """
    pause, said = FIRST_PAUSE, ""
    while True:
        try:
            return await step()
        except ConfigError:
            raise
        except (ApiError, ClusterError) as error:
            if str(error) != said:
                said = str(error)
                log.warning("waiting for %s: %s", what, said)
        await clock.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - spreads load
        pause = min(pause * 2, LONGEST_PAUSE)

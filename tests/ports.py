"""Ports for servers that have to be given one.

A port that the system gave and took back may be somebody else's a moment later. These are below the range from which
the system gives, and no two workers of a test run get the same.
"""

from __future__ import annotations

import os
import random

from isvc.local.node.pods.ports import is_free

_WORKERS = 16
_given: set[int] = set()


def free_port() -> int:
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _WORKERS
    while True:
        port = random.randrange(10_000, 20_000, _WORKERS) + worker
        if port not in _given and is_free(port):
            _given.add(port)
            return port

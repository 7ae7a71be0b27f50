"""Makes guessing a secret slow for whoever guesses, and for nobody else."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable
from ipaddress import IPv6Address, ip_network
from typing import Final

from aiohttp import web

from isvc.kube.gourl import parse_address
from isvc.wire.bounded import Bounded

WRONG_COSTS: Final = 1.0  # seconds
MOST_IN_LINE: Final = 10
MOST_KNOWN: Final = 1000


class Guesses:
    """Checks the secrets that come from one address one after the other, and waits after a wrong one.

    A secret that was right before is no guess.
    """

    def __init__(self, check: Callable[[str], Awaitable[bool]]) -> None:
        self._check = check
        self._right_before: Bounded[bytes, None] = Bounded(MOST_KNOWN)  # digests
        self._locks: dict[str, asyncio.Lock] = {}
        self._in_line: Counter[str] = Counter()

    async def is_right(self, secret: str, address: str) -> bool:
        """Raises 429 if too many of the same address wait already."""
        digest = hashlib.sha256(secret.encode(errors="replace")).digest()
        if digest in self._right_before and await self._check(secret):
            return True
        self._right_before.pop(digest, None)
        if await self._in_turn(secret, network(address)):
            self._right_before[digest] = None
            return True
        return False

    async def _in_turn(self, secret: str, origin: str) -> bool:
        if self._in_line[origin] >= MOST_IN_LINE:
            raise web.HTTPTooManyRequests
        self._in_line[origin] += 1
        try:
            async with self._locks.setdefault(origin, asyncio.Lock()):
                right = await self._check(secret)
                if not right:
                    await asyncio.sleep(WRONG_COSTS)
                return right
        finally:
            self._in_line[origin] -= 1
            if not self._in_line[origin]:
                del self._in_line[origin], self._locks[origin]


def network(address: str) -> str:
    """Returns who is behind an address: with IPv6 one machine has as many addresses as it likes below one prefix."""
    parsed = parse_address(address.partition("%")[0])
    if parsed is None:
        return address
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)

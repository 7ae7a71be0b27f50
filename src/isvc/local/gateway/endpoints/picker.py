"""Picks the member of an InferencePool that answers a request: by queue, KV cache and the beginning of its prompt.

Queue and cache come from the servers' own metrics, which are read when a request needs them and the last reading is
old. Scores and their weights are those that the endpoint picker of the inference extension begins with.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.endpoints.pools import Member
from isvc.local.gateway.endpoints.prefixes import SeenPrefixes, blocks
from isvc.wire.bounded import Bounded

_QUEUE_WEIGHT: Final = 2.0
_CACHE_WEIGHT: Final = 2.0
_PREFIX_WEIGHT: Final = 3.0
_LONG_QUEUE: Final = 5
_FULL_CACHE: Final = 0.8
_FRESH_SECONDS: Final = 0.2
_PATIENCE_SECONDS: Final = 0.5
_MEMBERS: Final = 256  # more are forgotten, those first that were asked least lately
_METRIC: Final = re.compile(
    rb"^vllm:(num_requests_waiting|num_requests_running|kv_cache_usage_perc)\{[^}]*\} (\S+)", re.MULTILINE
)

Fetch = Callable[[Endpoint], Awaitable[bytes]]
"""Reads the metrics of a server; raises OSError or TimeoutError."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a server says about itself."""

    waiting: float = 0.0
    running: float = 0.0
    cache: float = 0.0  # share of the KV cache in use

    @classmethod
    def parse(cls, metrics: bytes) -> Figures:
        found = {name: float(value) for name, value in _METRIC.findall(metrics)}
        waiting, running = found.get(b"num_requests_waiting", 0.0), found.get(b"num_requests_running", 0.0)
        return cls(waiting, running, found.get(b"kv_cache_usage_perc", 0.0))

    @property
    def is_saturated(self) -> bool:
        return self.waiting >= _LONG_QUEUE or self.cache > _FULL_CACHE


@dataclass(slots=True)
class _Known:
    figures: Figures = Figures()
    read_at: float = float("-inf")
    answers: bool = True
    seen: SeenPrefixes = field(default_factory=SeenPrefixes)


class Picker:
    def __init__(self, fetch: Fetch, running: Callable[[Endpoint], int]) -> None:
        """`running` tells how many requests of ours an endpoint is answering, later than its metrics do."""
        self._fetch = fetch
        self._running = running
        self._known: Bounded[str, _Known] = Bounded(_MEMBERS)

    async def order(self, members: Sequence[Member], body: bytes) -> list[Member]:
        """Returns all members, the best first; the others are for when it does not accept connections."""
        known = {member: self._recall(member) for member in members}
        stale = [member for member, each in known.items() if time.monotonic() - each.read_at > _FRESH_SECONDS]
        await asyncio.gather(*(self._read(member, known[member]) for member in stale))
        prompt = blocks(body)
        loads = {member: self._load(member, each) for member, each in known.items()}
        shuffled = random.sample(members, len(members))
        least, most = min(loads.values()), max(loads.values())

        def rank(member: Member) -> tuple[bool, bool, float]:
            each = known[member]
            queue = (most - loads[member]) / (most - least) if most > least else 1.0
            score = (
                _QUEUE_WEIGHT * queue
                + _CACHE_WEIGHT * (1 - each.figures.cache)
                + _PREFIX_WEIGHT * each.seen.share(prompt)
            )
            return not each.answers, each.figures.is_saturated, -score

        ranked = sorted(shuffled, key=rank)
        known[ranked[0]].seen.add(prompt)
        return ranked

    def _recall(self, member: Member) -> _Known:
        known = self._known[member.uid] = self._known.get(member.uid) or _Known()
        return known

    def _load(self, member: Member, known: _Known) -> float:
        return max(known.figures.waiting + known.figures.running, float(self._running(member.endpoint)))

    async def _read(self, member: Member, known: _Known) -> None:
        known.read_at = time.monotonic()  # others need not ask meanwhile
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                known.figures = Figures.parse(await self._fetch(member.endpoint))
            known.answers = True
        except (OSError, TimeoutError, ValueError):
            known.answers = False

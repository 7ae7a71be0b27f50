"""How many pods a Revision needs: Knative's pod autoscaler, with its stable window, its panics and its last pod."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from isvc.local.knative.demand import Demand
from isvc.local.knative.settings import Scaling


class Pods(NamedTuple):
    """How many there are to be until now, and how many are ready."""

    wanted: int
    ready: int


@dataclass(slots=True)
class Decider:
    """What is remembered of one Revision between two decisions; moments are those of a monotonic clock."""

    active_since: float  # when the first pod became ready
    idle_since: float | None = None
    _panicking_since: float | None = None
    _most_in_panic: int = 0
    _delayed: deque[tuple[float, int]] = field(default_factory=deque)

    def decide(
        self, scaling: Scaling, demand: Demand, now: float, pods: Pods, *, reachable: bool, initialized: bool
    ) -> int:
        """Returns the number of pods. `initialized` when the initial scale has been reached once.

        A Revision that no Route leads to is kept neither by its lower bound nor by a delay.
        """
        if not pods.ready and (demand.under_way or not initialized):
            self.active_since = now
        wanted = self._wanted_pods(scaling, demand, now, pods.ready, reachable=reachable)
        least = scaling.least if reachable else 0
        if not initialized and reachable:
            least = max(least, scaling.initial)
        wanted = max(wanted, least)
        if scaling.most:
            wanted = min(wanted, scaling.most)
        if wanted:
            self.idle_since = None
            return wanted
        if not pods.wanted:
            return 1 if demand.under_way else 0
        return self._last_pod(scaling, now, initialized=initialized)

    def _wanted_pods(self, scaling: Scaling, demand: Demand, now: float, ready: int, *, reachable: bool) -> int:
        measure = demand.rate if scaling.metric == "rps" else demand.concurrency
        pods = max(1, ready)
        most = math.ceil(scaling.scale_up_rate * pods)
        least = math.floor(pods / scaling.scale_down_rate) if reachable else 0
        stable = math.ceil(measure(now, scaling.stable_window) / scaling.target)
        panic = math.ceil(measure(now, scaling.panic_window) / scaling.target)
        bounded = [min(max(count, least), most) for count in (stable, panic)]
        if scaling.activation > 1:
            asked = zip(bounded, (stable, panic), strict=True)
            bounded = [max(count, scaling.activation) if needed else count for count, needed in asked]
        wanted = self._panic(scaling, now, bounded, is_over=panic / pods >= scaling.panic_threshold)
        return self._delay(scaling, now, wanted) if reachable and scaling.scale_down_delay else wanted

    def _panic(self, scaling: Scaling, now: float, counts: list[int], *, is_over: bool) -> int:
        """Counts the short window, and lets no pod go, while requests come in much faster than pods can take them."""
        stable, panic = counts
        if is_over:
            self._panicking_since = now
        elif self._panicking_since is not None and self._panicking_since + scaling.stable_window < now:
            self._panicking_since, self._most_in_panic = None, 0
        if self._panicking_since is None:
            return stable
        self._most_in_panic = max(self._most_in_panic, stable, panic)
        return self._most_in_panic

    def _delay(self, scaling: Scaling, now: float, wanted: int) -> int:
        self._delayed.append((now, wanted))
        while self._delayed[0][0] <= now - scaling.scale_down_delay:
            self._delayed.popleft()
        return max(count for _, count in self._delayed)

    def _last_pod(self, scaling: Scaling, now: float, *, initialized: bool) -> int:
        """Keeps one pod until it was there for a stable window, and for as long as it is to be retained after that."""
        if now - self.active_since < scaling.stable_window and initialized:
            return 1
        self.idle_since = now if self.idle_since is None else self.idle_since
        return 0 if now - self.idle_since >= scaling.retention else 1

"""How fast a HorizontalPodAutoscaler may follow: `spec.behavior`, stabilization windows and policies.

A recommendation is first held against those of the last seconds, of which the most careful one counts, then against
what policies let replicas change within their periods, then against the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from isvc.kube.builtin.defaults.workloads import SCALING_RULES
from isvc.kube.objects import Object, dig

SCALE_DOWN_WINDOW: Final = 300


class Verdict(NamedTuple):
    """A number of replicas, with the reasons for the conditions AbleToScale and ScalingLimited."""

    replicas: int
    able: tuple[str, str]
    limited: bool
    limit: tuple[str, str]


class Bounds(NamedTuple):
    least: int
    most: int


class _Stabilized(NamedTuple):
    replicas: int
    able: tuple[str, str]


@dataclass(slots=True)
class History:
    """What one autoscaler recommended and did, with the moments of a monotonic clock."""

    recommendations: list[tuple[float, int]] = field(default_factory=list)
    changes: list[tuple[float, int]] = field(default_factory=list)  # replicas that were added, or removed

    def add_change(self, now: float, before: int, after: int) -> None:
        longest = 1800  # the longest period that the API accepts
        self.changes = [each for each in self.changes if each[0] > now - longest]
        self.changes.append((now, after - before))

    def change_within(self, now: float, seconds: float) -> int:
        return sum(change for moment, change in self.changes if moment > now - seconds)


def decide(spec: Object, history: History, now: float, current: int, wanted: int, bounds: Bounds) -> Verdict:
    """Returns what becomes of a recommendation, which the history remembers."""
    up, down = _rules(spec, "scaleUp"), _rules(spec, "scaleDown")
    stabilized = _stabilize(history, now, current, wanted, (_window(up), _window(down)))
    replicas, limit = _limit(history, now, current, stabilized.replicas, bounds, up, down)
    return Verdict(replicas, stabilized.able, replicas != stabilized.replicas, limit)


def _rules(spec: Object, direction: str) -> Object:
    given = {key: value for key, value in (dig(spec, "behavior", direction) or {}).items() if value is not None}
    return {"stabilizationWindowSeconds": SCALE_DOWN_WINDOW, **SCALING_RULES[direction], **given}


def _window(rules: Object) -> int:
    return int(rules["stabilizationWindowSeconds"])


def _stabilize(history: History, now: float, current: int, wanted: int, windows: tuple[int, int]) -> _Stabilized:
    """Keeps within the lowest recommendation of the window for growing and the highest of that for shrinking."""
    up_window, down_window = windows

    def recommended_within(window: int) -> list[int]:
        return [wanted, *(count for moment, count in history.recommendations if moment > now - window)]

    lowest, highest = min(recommended_within(up_window)), max(recommended_within(down_window))
    oldest = now - max(up_window, down_window)
    history.recommendations = [each for each in history.recommendations if each[0] > oldest] + [(now, wanted)]
    replicas = min(max(current, lowest), highest)
    if replicas == wanted:
        return _Stabilized(replicas, ("ReadyForNewScale", "recommended size matches current size"))
    if wanted >= current:
        why = "recent recommendations were lower than current one, applying the lowest recent recommendation"
        return _Stabilized(replicas, ("ScaleUpStabilized", why))
    why = "recent recommendations were higher than current one, applying the highest recent recommendation"
    return _Stabilized(replicas, ("ScaleDownStabilized", why))


def _limit(
    history: History, now: float, current: int, wanted: int, bounds: Bounds, up: Object, down: Object
) -> tuple[int, tuple[str, str]]:
    if wanted > current:
        most = max(current, _furthest(history, now, current, up, grow=True))
        if wanted > min(most, bounds.most):
            if most < bounds.most:
                why = "the desired replica count is increasing faster than the maximum scale rate"
                return most, ("ScaleUpLimit", why)
            why = "the desired replica count is more than the maximum replica count"
            return bounds.most, ("TooManyReplicas", why)
    elif wanted < current:
        least = min(current, _furthest(history, now, current, down, grow=False))
        if wanted < max(least, bounds.least):
            if least > bounds.least:
                why = "the desired replica count is decreasing faster than the maximum scale rate"
                return least, ("ScaleDownLimit", why)
            why = "the desired replica count is less than the minimum replica count"
            return bounds.least, ("TooFewReplicas", why)
    return wanted, ("DesiredWithinRange", "the desired count is within the acceptable range")


def _furthest(history: History, now: float, current: int, rules: Object, *, grow: bool) -> int:
    """Returns the most, or the least, replicas that the policies allow."""
    policies: Sequence[Object] = rules["policies"] or ()
    if rules["selectPolicy"] == "Disabled" or not policies:
        return current
    proposed: list[int] = []
    for policy in policies:
        began_with = current - history.change_within(now, policy["periodSeconds"])
        change = policy["value"] if policy["type"] == "Pods" else began_with * policy["value"] / 100
        # Rounded so that at least one replica may come, or go.
        proposed.append(math.ceil(began_with + change) if grow else math.floor(began_with - change))
    return max(proposed) if grow == (rules["selectPolicy"] == "Max") else min(proposed)

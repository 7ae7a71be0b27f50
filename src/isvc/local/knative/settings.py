"""How a Revision scales: Knative's `config-autoscaler`, and what annotations of the Revision say instead."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from isvc.kube.durations import seconds
from isvc.kube.objects import Object, annotations_of, dig

CONFIG_NAME: Final = "config-autoscaler"
_PREFIX: Final = "autoscaling.knative.dev"
# What Knative has without a configuration.
DEFAULTS: Final[Mapping[str, str]] = {
    "container-concurrency-target-percentage": "70",
    "container-concurrency-target-default": "100",
    "requests-per-second-target-default": "200",
    "stable-window": "60s",
    "panic-window-percentage": "10",
    "panic-threshold-percentage": "200",
    "max-scale-up-rate": "1000",
    "max-scale-down-rate": "2",
    "enable-scale-to-zero": "true",
    "scale-to-zero-pod-retention-period": "0s",
    "scale-down-delay": "0s",
    "initial-scale": "1",
    "allow-zero-initial-scale": "false",
    "min-scale": "0",
    "max-scale": "0",
}


@dataclass(frozen=True, slots=True)
class Scaling:
    """How one Revision scales; times are seconds."""

    metric: str  # concurrency or rps
    target: float  # of the metric, for each pod
    concurrency: int  # requests that a pod takes at a time, 0 for any number
    least: int
    most: int  # 0 for any number
    initial: int
    activation: int  # pods to start with when the first request comes
    stable_window: float
    panic_window: float
    panic_threshold: float
    scale_up_rate: float
    scale_down_rate: float
    scale_down_delay: float
    retention: float  # of the last pod, once nothing asks for it

    @classmethod
    def of(cls, revision: Object, config: Mapping[str, str]) -> Scaling:
        settings = _Settings(revision, {**DEFAULTS, **config})
        concurrency = int(dig(revision, "spec", "containerConcurrency") or 0)
        metric = settings.text("metric", "") or "concurrency"
        window = settings.seconds("window", "stable-window")
        to_zero = settings.text("", "enable-scale-to-zero").lower() == "true"
        most = int(settings.number("max-scale", "max-scale"))
        least = int(settings.number("min-scale", "min-scale"))
        initial = int(settings.number("initial-scale", "initial-scale"))
        return cls(
            metric=metric,
            target=_target(settings, metric, concurrency),
            concurrency=concurrency,
            least=least if to_zero else max(1, least),
            most=most,
            initial=initial if initial or settings.text("", "allow-zero-initial-scale").lower() == "true" else 1,
            activation=int(settings.number("activation-scale", "")) or 1,
            stable_window=window,
            panic_window=window * settings.number("panic-window-percentage", "panic-window-percentage") / 100,
            panic_threshold=settings.number("panic-threshold-percentage", "panic-threshold-percentage") / 100,
            scale_up_rate=max(1.01, settings.number("", "max-scale-up-rate")),
            scale_down_rate=max(1.01, settings.number("", "max-scale-down-rate")),
            scale_down_delay=settings.seconds("scale-down-delay", "scale-down-delay"),
            retention=settings.seconds("scale-to-zero-pod-retention-period", "scale-to-zero-pod-retention-period"),
        )


@dataclass(frozen=True, slots=True)
class _Settings:
    """An annotation if there is one that can be read, else what is configured."""

    revision: Object
    config: Mapping[str, str]

    def text(self, annotation: str, key: str) -> str:
        return annotations_of(self.revision).get(f"{_PREFIX}/{annotation}") or self.config.get(key, "")

    def number(self, annotation: str, key: str) -> float:
        return _first(_number, self.text(annotation, key), self.config.get(key, ""), DEFAULTS.get(key, "0"))

    def seconds(self, annotation: str, key: str) -> float:
        return _first(seconds, self.text(annotation, key), self.config.get(key, ""), DEFAULTS.get(key, "0s"))


def _first(read: Callable[[str], float | None], *texts: str) -> float:
    return next((value for text in texts if (value := read(text)) is not None), 0.0)


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,18}(\.\d{1,18})?", text, re.ASCII) else None


def _target(settings: _Settings, metric: str, concurrency: int) -> float:
    """Returns what a pod should have of the metric: a share of what it can have."""
    default = "requests-per-second-target-default" if metric == "rps" else "container-concurrency-target-default"
    total = settings.number("target", default)
    if metric != "rps" and concurrency:
        stated = settings.text("target", "")
        total = min(total, concurrency) if stated else float(concurrency)
    share = settings.number("target-utilization-percentage", "container-concurrency-target-percentage") / 100
    return max(0.01, total * share)

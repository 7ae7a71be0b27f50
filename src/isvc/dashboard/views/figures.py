"""What model servers measure, and how many of them there were, as charts.

Two scrapes make a rate, and a histogram between them makes percentiles.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

WIDTH, HEIGHT = 300.0, 70.0
PERCENT: Final = " %"
#: The histogram of a whole request, by server: KServe's and ours, vLLM's, Triton has none.
LATENCY: Final = ("request_predict_seconds", "vllm:e2e_request_latency_seconds", "http_request_duration_seconds")
WAITING: Final = ("vllm:num_requests_waiting",)
RUNNING: Final = ("vllm:num_requests_running",)
CACHE: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")


@dataclass(frozen=True, slots=True)
class Sample:
    """What all pods of a service said at one moment; None for what no server exposes."""

    time: float
    buckets: Mapping[float, float] = field(default_factory=dict)  # requests so far, by the latency they stayed below
    waiting: float | None = None
    running: float | None = None
    cache: float | None = None

    @property
    def requests(self) -> float | None:
        return max(self.buckets.values()) if self.buckets else None


class Replicas(NamedTuple):
    """What a service had from `time` on; `canary` is the per cent of requests that its canary gets."""

    time: float
    wanted: int
    ready: int
    canary: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """`points` are those of an SVG polyline; `last` is the latest value, as text."""

    name: str
    points: str
    last: str


@dataclass(frozen=True, slots=True)
class Chart:
    """`top` is the highest value, as text; `seconds` is the time from its left to its right."""

    title: str
    lines: tuple[Line, ...]
    top: str
    seconds: float

    @property
    def summary(self) -> str:
        """Describes the chart to those who do not see it."""
        return f"{self.title}: " + ", ".join(f"{line.name} {line.last}" for line in self.lines)


def parse_metrics(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Returns samples by name from Prometheus' text format; what is no such text holds none."""
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for each in family.samples:
                found.setdefault(each.name, []).append((each.labels, each.value))
    except (ValueError, IndexError, KeyError):
        return found
    return found


def sample(time: float, texts: Iterable[str]) -> Sample:
    buckets: dict[float, float] = {}
    gauges: dict[tuple[str, ...], list[float]] = {}
    for text in texts:
        metrics = parse_metrics(text)
        name = next((each for each in LATENCY if f"{each}_bucket" in metrics), "")
        for labels, value in metrics.get(f"{name}_bucket", ()):
            bound = float(labels.get("le", "inf"))
            buckets[bound] = buckets.get(bound, 0.0) + value
        for names in (WAITING, RUNNING, CACHE):
            values = next((metrics[each] for each in names if each in metrics), [])
            gauges.setdefault(names, []).extend(value for _, value in values)
    cache = gauges.get(CACHE)
    return Sample(
        time,
        buckets,
        waiting=_sum(gauges.get(WAITING)),
        running=_sum(gauges.get(RUNNING)),
        cache=max(cache) if cache else None,
    )


def charts(samples: Sequence[Sample], replicas: Sequence[Replicas] = (), now: float = 0.0) -> tuple[Chart, ...]:
    """Returns charts of what is known; a rate or a percentile needs two samples."""
    found = (*_metric_charts(samples), *_replica_charts(replicas, now))
    return tuple(each for each in found if each.lines)


def _replica_charts(replicas: Sequence[Replicas], now: float) -> Iterator[Chart]:
    """Yields lines with steps: a number holds until it changes."""
    if not replicas:
        return
    ends = (*(each.time for each in replicas[1:]), max(now, replicas[-1].time))
    steps = [step for each, end in zip(replicas, ends, strict=True) for step in (each, each._replace(time=end))]
    times = [each.time for each in steps]
    counts = {"ready": [float(each.ready) for each in steps], "wanted": [float(each.wanted) for each in steps]}
    yield _chart("Replicas", "", times, counts)
    yield _chart("Traffic for the canary", PERCENT, times, {"share": [_float(each.canary) for each in steps]})


def _metric_charts(samples: Sequence[Sample]) -> Iterator[Chart]:
    pairs = list(pairwise(samples))
    times = [each.time for each in samples]
    later = times[1:]
    percentiles = {
        "median": [_percentile(*pair, 0.5) for pair in pairs],
        "95th": [_percentile(*pair, 0.95) for pair in pairs],
    }
    requests = {"running": [each.running for each in samples], "waiting": [each.waiting for each in samples]}
    yield _chart("Requests a second", "", later, {"all": [_rate(*pair) for pair in pairs]})
    yield _chart("Latency", " ms", later, percentiles)
    yield _chart("Requests in the server", "", times, requests)
    yield _chart("KV cache in use", PERCENT, times, {"fullest": [_percent(each.cache) for each in samples]})


def _chart(title: str, unit: str, times: Sequence[float], series: Mapping[str, Sequence[float | None]]) -> Chart:
    known = [value for values in series.values() for value in values if value is not None]
    if not known:
        return Chart(title, (), "", 0.0)
    top = 100.0 if unit == PERCENT else max(known) or 1.0
    begin, span = times[0], max(times[-1] - times[0], 1.0)
    lines = []
    for name, values in series.items():
        points = [(time, value) for time, value in zip(times, values, strict=True) if value is not None]
        if len(points) == 1:
            points = [(begin, points[0][1]), (begin + span, points[0][1])]
        if points:
            placed = ((WIDTH * (time - begin) / span, HEIGHT - (HEIGHT - 4) * value / top) for time, value in points)
            lines.append(Line(name, " ".join(f"{x:.1f},{y:.1f}" for x, y in placed), _text(points[-1][1], unit)))
    return Chart(title, tuple(lines), _text(top, unit), span)


def _rate(before: Sample, after: Sample) -> float | None:
    if before.requests is None or after.requests is None or after.time <= before.time:
        return None
    return max(0.0, after.requests - before.requests) / (after.time - before.time)  # a restart counts from zero again


def _percentile(before: Sample, after: Sample, share: float) -> float | None:
    """Returns milliseconds, within the bucket as Prometheus does it; nothing where there were no requests."""
    grown = [(bound, after.buckets[bound] - before.buckets.get(bound, 0.0)) for bound in sorted(after.buckets)]
    if not grown or grown[-1][1] <= 0:
        return None
    wanted, low, below = share * grown[-1][1], 0.0, 0.0
    for bound, count in grown:
        if count >= wanted:
            if bound == float("inf"):
                return low * 1000
            inside = (wanted - below) / (count - below) if count > below else 1.0
            return (low + (bound - low) * inside) * 1000
        low, below = bound, count
    return low * 1000


def _sum(values: Sequence[float] | None) -> float | None:
    return sum(values) if values else None


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)


def _text(value: float, unit: str) -> str:
    shown = f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"
    return f"{shown}{unit}"

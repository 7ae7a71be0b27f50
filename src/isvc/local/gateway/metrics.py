"""What Envoy counts, under the gateway's names for Prometheus. Served at `/-/metrics` on this machine's own names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from isvc.local.gateway.envoy.types import STAT_PREFIX

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
QUERY: Final = f"/stats/prometheus?filter=^({STAT_PREFIX}\\.(requests|response_bytes|request_duration)|http\\.)"
_LINE: Final = re.compile(r"envoy_(\w+?)(_bucket|_sum|_count)?(\{.*\})? (\S+)")


_NAMES: Final = {
    f"{STAT_PREFIX}_requests": "isvc_gateway_requests_total",
    f"{STAT_PREFIX}_response_bytes": "isvc_gateway_response_bytes_total",
    f"{STAT_PREFIX}_request_duration": "isvc_gateway_request_duration_seconds",
    "http_downstream_rq_active": "isvc_gateway_requests_in_flight",
}
_ABOUT: Final = {
    "isvc_gateway_requests_total": ("counter", "Requests that were answered."),
    "isvc_gateway_response_bytes_total": ("counter", "Bytes of the bodies of answers."),
    "isvc_gateway_request_duration_seconds": ("histogram", "Time from a request's headers to the end of its answer."),
    "isvc_gateway_requests_in_flight": ("gauge", "Requests that are being answered."),
}


def translate(text: str) -> str:
    """Returns Envoy's statistics under our names: seconds, and 499 for a client that left first."""
    found: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        if (match := _LINE.fullmatch(line)) and match[1] in _NAMES:
            name, suffix, labels, value = match.groups()
            series, amount = _series(_NAMES[name], suffix or "", labels or "", float(value))
            values = found.setdefault(_NAMES[name], {})
            values[series] = values.get(series, 0) + amount
    return "".join(f"{line}\n" for name, values in found.items() for line in _lines(name, values))


def _lines(name: str, values: Mapping[str, float]) -> Iterator[str]:
    kind, text = _ABOUT[name]
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for series, value in values.items():
        yield f"{series} {value:.12g}"


def _series(name: str, suffix: str, labels: str, value: float) -> tuple[str, float]:
    pairs = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels))
    pairs.pop("envoy_http_conn_manager_prefix", None)
    if pairs.get("service") == "":
        pairs["service"] = "-"
    if pairs.get("code") == "0":
        pairs["code"] = "499"
    if suffix == "_bucket" and pairs["le"] != "+Inf":
        pairs["le"] = f"{float(pairs['le']) / 1000:g}"
    shown = ",".join(f'{key}="{pairs[key]}"' for key in sorted(pairs))
    return f"{name}{suffix}{f'{{{shown}}}' if shown else ''}", value / 1000 if suffix == "_sum" else value

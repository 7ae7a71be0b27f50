"""Which requests are answered at all: right host, own site, and headers that keep pages from being misused.

Pages carry no inline script and no inline style, load nothing from elsewhere and cannot be framed. A name that leads to
this machine only since a page was loaded (DNS rebinding) is refused where the dashboard is for this machine alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

_LOOPBACK: Final = re.compile(r"(localhost|127(\.[0-9]{1,3}){3}|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)
_READS: Final = ("GET", "HEAD")

HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer browsers send forms with the origin null
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def is_loopback(host: str) -> bool:
    return _LOOPBACK.fullmatch(host) is not None


def refusal(method: str, headers: Mapping[str, str], *, only_loopback: bool) -> str:
    """Says why a request is not answered; returns nothing if it is."""
    host = headers.get("Host", "")
    if only_loopback and not is_loopback(host):
        return "this dashboard answers to localhost alone"
    origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site", "none")
    if method in _READS:
        return ""
    if site not in ("none", "same-origin"):
        return "another site may not send requests to the dashboard"
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return "another site may not send requests to the dashboard"
    return ""

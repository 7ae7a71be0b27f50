"""Which headers a proxy passes on: not those that are meant for the next connection alone (RFC 9110, 7.6.1)."""

from __future__ import annotations

from typing import Final

from multidict import CIMultiDict, MultiMapping

HOP_BY_HOP: Final = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
     "transfer-encoding", "upgrade")
)  # fmt: skip
# What the next server needs, even if a client lists it in Connection to have it removed.
_NEEDED: Final = frozenset(("host", "content-length", "content-type", "authorization", "cookie"))


def end_to_end(headers: MultiMapping[str]) -> CIMultiDict[str]:
    dropped = HOP_BY_HOP
    if "Connection" in headers:
        listed = {name.strip().lower() for value in headers.getall("Connection") for name in value.split(",")}
        dropped = HOP_BY_HOP | (listed - _NEEDED)
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in dropped)

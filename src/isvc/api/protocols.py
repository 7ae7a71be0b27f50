"""The protocols that model servers speak, and what they are called in paths and environment variables."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

PROTOCOL_ENV = "PROTOCOL"
"""Environment variable with which a container of one's own says what it speaks."""


class Protocol(StrEnum):
    V1 = "v1"
    V2 = "v2"
    GRPC_V1 = "grpc-v1"
    GRPC_V2 = "grpc-v2"


_ORDER = {protocol.value: order for order, protocol in enumerate(Protocol, 1)}
_UNKNOWN = len(_ORDER) + 1


def rank(protocols: Iterable[str]) -> int:
    """Returns how early a runtime of these protocols comes when runtimes are sorted: v1 first, unknown ones last."""
    return min((_ORDER.get(protocol, _UNKNOWN) for protocol in protocols), default=_UNKNOWN)

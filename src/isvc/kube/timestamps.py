"""Points in time as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """Writes a time to the second: `2026-11-15T12:00:00Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime) -> str:
    """Writes a time with microseconds, as leases and events have it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def seconds_between(begin: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()

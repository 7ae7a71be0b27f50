"""A column of a table, and what cells of several kinds are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from isvc.kube.objects import Object, dig, name_of

NONE = "<none>"
UNKNOWN = "<unknown>"
WIDE = 1  # shown with -o wide only


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    cell: Callable[[Object], Any]
    type: str = "string"
    priority: int = 0
    format: str = ""
    description: str = ""

    def definition(self) -> Object:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


NAME = Column("Name", name_of, format="name", description="Name must be unique within a namespace.")


def at(name: str, *path: str | int, default: Any = "", kind: str = "string", wide: bool = False) -> Column:
    """Makes a column that shows the value at a path."""

    def cell(obj: Object) -> Any:
        value = dig(obj, *path)
        return default if value is None or value == "" else value

    return Column(name, cell, kind, WIDE if wide else 0)


def wide(name: str, cell: Callable[[Object], Any]) -> Column:
    return Column(name, cell, "string", WIDE)


def count(name: str, *path: str) -> Column:
    """Makes a column that shows how many items are at a path."""
    return Column(name, lambda obj: len(dig(obj, *path) or ()), "integer")


def age(obj: Object) -> str:
    return since(dig(obj, "metadata", "creationTimestamp"))


AGE = Column("Age", age)
CREATED_AT = at("Created At", "metadata", "creationTimestamp", kind="date")


def since(timestamp: Any) -> str:
    try:
        then = datetime.fromisoformat(str(timestamp))
    except ValueError:
        return UNKNOWN
    return duration((datetime.now(UTC) - then).total_seconds())


def duration(seconds: float) -> str:
    """Writes seconds as kubectl does: 5s, 3m20s, 25h, 9d, 2y10d."""
    total = int(seconds)
    if total < -1:
        return "<invalid>"
    total = max(total, 0)
    minutes, hours, days = total // 60, total // 3600, total // 86400
    if total < 120:
        return f"{total}s"
    if minutes < 10:
        return f"{minutes}m{total % 60}s" if total % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if days < 730:
        return f"{days}d"
    years, rest = divmod(days, 365)
    return f"{years}y{rest}d" if rest and years < 8 else f"{years}y"


def selector(value: Any) -> str:
    """Returns a label selector object on one line."""
    if not isinstance(value, dict):
        return NONE
    labels = value.get("matchLabels", value if "matchExpressions" not in value else {}) or {}
    parts = [f"{key}={labels[key]}" for key in sorted(labels)]
    for each in value.get("matchExpressions") or () if "matchExpressions" in value else ():
        operator = {"In": "in", "NotIn": "notin"}.get(each["operator"])
        values = ",".join(each.get("values") or ())
        sign = {"Exists": each["key"], "DoesNotExist": f"!{each['key']}"}.get(each["operator"])
        parts.append(sign or f"{each['key']} {operator} ({values})")
    return ",".join(parts) or NONE


def join_values(values: Any) -> str:
    return ",".join(str(value) for value in values) or NONE

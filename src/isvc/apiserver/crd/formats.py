"""The string formats that Kubernetes checks in custom resources; any other format is a comment."""

from __future__ import annotations

import base64
import ipaddress
import re
from collections.abc import Callable
from datetime import date, datetime
from urllib.parse import urlsplit

from isvc.kube.names import LABEL

_UUID = r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?%s[0-9a-f]{3}-?%s[0-9a-f]{3}-?[0-9a-f]{12}"
_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_GO_DURATION = re.compile(r"[-+]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_WORDY_DURATION = re.compile(
    r"(?i)\d+\s*(d|day|days|h|hr|hour|hours|m|min|mins|minute|minutes|s|sec|secs|second|seconds"
    r"|ms|milli|millis|millisecond|milliseconds|us|micro|micros|microsecond|microseconds"
    r"|ns|nano|nanos|nanosecond|nanoseconds|w|wk|week|weeks)"
)


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)
    return lambda value: compiled.fullmatch(value) is not None


def _parses(parser: Callable[[str], object]) -> Callable[[str], bool]:
    def check(value: str) -> bool:
        try:
            parser(value)
        except ValueError:
            return False
        return True

    return check


def _date_time(value: str) -> bool:
    if not _DATE_TIME.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value.upper())
    except ValueError:
        return False
    return True


def _uri(value: str) -> bool:
    """Returns whether it is an absolute URI or an absolute path, as for Go's url.ParseRequestURI."""
    if not value or any(ord(c) < 0x21 or ord(c) == 0x7F for c in value):
        return False
    if value.startswith("/"):
        return True
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return bool(parts.scheme) and (bool(parts.netloc) or bool(value.partition(":")[2].startswith("/")) or ":" in value)


def _hostname(value: str) -> bool:
    return 0 < len(value) <= 255 and all(
        0 < len(label) <= 63 and re.fullmatch(r"[a-zA-Z0-9_]([-a-zA-Z0-9_]*[a-zA-Z0-9_])?", label)
        for label in value.rstrip(".").split(".")
    )


def _duration(value: str) -> bool:
    return bool(_GO_DURATION.fullmatch(value) or _WORDY_DURATION.fullmatch(value))


_CHECKS: dict[str, Callable[[str], bool]] = {
    "uri": _uri,
    "email": _matches(r"[^@\s<>]+@[^@\s<>]+|.*<[^@\s<>]+@[^@\s<>]+>"),
    "hostname": _hostname,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "cidr": lambda value: "/" in value and _parses(lambda v: ipaddress.ip_network(v, strict=False))(value),
    "mac": _matches(r"(?i)([0-9a-f]{2}([:-])[0-9a-f]{2}(\2[0-9a-f]{2}){4,})|([0-9a-f]{4}\.){2,}[0-9a-f]{4}"),
    "uuid": _matches(_UUID % ("[0-9a-f]", "[0-9a-f]")),
    "uuid3": _matches(_UUID % ("3", "[0-9a-f]")),
    "uuid4": _matches(_UUID % ("4", "[89ab]")),
    "uuid5": _matches(_UUID % ("5", "[89ab]")),
    "bsonobjectid": _matches(r"(?i)[0-9a-f]{24}"),
    "hexcolor": _matches(r"#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(r"rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)"),
    "ssn": _matches(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "byte": _parses(lambda value: base64.b64decode(value, validate=True)),
    "date": lambda value: len(value) == 10 and _parses(date.fromisoformat)(value),
    "duration": _duration,
    "datetime": _date_time,
    "k8s-short-name": _matches(_LABEL),
    "k8s-long-name": lambda value: len(value) <= 253 and _matches(rf"{LABEL}(\.{LABEL})*")(value),
}


def is_well_formed(value: str, name: str) -> bool:
    """Returns whether the text has the format; true for formats that are not checked."""
    check = _CHECKS.get(name) or _CHECKS.get(name.replace("-", ""))
    return check is None or check(value)

"""Addresses as Go's net/url reads them and writes them down again.

A field of Go's URL type is parsed and printed on its way through a defaulter: what does not parse is refused, and what
does may be spelled differently afterwards (`HF://a b` becomes `hf://a%20b`).
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import quote, unquote_to_bytes

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BAD_IN_HOST = re.compile(r"""[^A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>"%\u0080-\U0010ffff]|%(?!25|[89A-Fa-f])""")
_BAD_IN_USER = re.compile(r"[^A-Za-z0-9\-._:~!$&'()*+,;=%@]")
_PORT = re.compile(r"(?:\[.*\]|(?!\[)(?:.*(?=:)|[^:]*))(?::[0-9]*)?")
_PRINTED_IN_HOST = "!$&'()*+,;=:[]<>\"%@"
_LITERAL = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]%/]*")


def normalize(text: str) -> str:
    """Returns the address as Go would print it. Raises `ValueError` for what Go would not parse."""
    if re.search(r"[\x00-\x1f\x7f]", text):
        raise ValueError("has a control character")
    if text.startswith(":"):
        raise ValueError("has no scheme before the colon")
    rest, _, fragment = text.partition("#")
    rest, question_mark, query = rest.partition("?")
    scheme, rest = (found[1].lower() + ":", found[2]) if (found := _SCHEME.fullmatch(rest)) else ("", rest)
    after = question_mark + query + ("#" + _escape(fragment, safe="?!()*") if fragment else "")
    if scheme and not rest.startswith("/"):
        return scheme + rest + after
    if not scheme and ":" in rest.partition("/")[0]:
        raise ValueError("has a colon in the first segment of its path")
    if not rest.startswith("//") or (not scheme and rest.startswith("///")):
        return scheme + _escape(rest) + after
    authority, slash, path = rest[2:].partition("/")
    _check_authority(authority)
    path = _escape(slash + path)
    host = quote(authority, safe=_PRINTED_IN_HOST)
    return scheme + ("//" if host or path else "") + host + path + after


def parse_address(host: str) -> IPv4Address | IPv6Address | None:
    """Returns the IP address that a host is; None for a name, and for what is neither."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def url_host(host: str) -> str:
    """Returns a host as it stands in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host


def _check_authority(authority: str) -> None:
    user, _, host = authority.rpartition("@")
    if _BAD_IN_USER.search(user) or _BAD_ESCAPE.search(user):
        raise ValueError(f"has a user that may not be written like that: {user!r}")
    if _BAD_IN_HOST.search(host) or _BAD_ESCAPE.search(host):
        raise ValueError(f"has a host that may not be written like that: {host!r}")
    if not _PORT.fullmatch(host):
        raise ValueError(f"has a port that is no number: {host!r}")


def _escape(path: str, safe: str = "") -> str:
    if _BAD_ESCAPE.search(path):
        raise ValueError("has a % that two hexadecimal digits do not follow")
    return path if _LITERAL.fullmatch(path) else quote(unquote_to_bytes(path), safe="$&+,/:;=@" + safe)

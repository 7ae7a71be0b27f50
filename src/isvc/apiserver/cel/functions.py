"""The functions that Kubernetes adds to CEL: quantities, addresses, URLs, lists, sets, patterns, versions.

The runtime passes only CEL's own values to functions, so a value of Kubernetes' types travels as a map with one entry:
its type and a canonical form, by which CEL's own `==` compares it. Missing: indexOf on lists, which the runtime's
string functions occupy.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from isvc.kube.patterns import find_all
from isvc.kube.quantity import Quantity, QuantityError

_SEMVER = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
Tagged = dict[str, Any]


def declarations(cel: Any) -> list[Any]:
    """Returns one declaration per function; member functions take their receiver first."""
    types = {"s": cel.Type.STRING, "b": cel.Type.BOOL, "i": cel.Type.INT, "f": cel.Type.DOUBLE, "l": cel.Type.LIST}
    types |= {"d": cel.Type.DYN, "m": cel.Type.MAP}

    def overload(name: str, signature: str, implementation: Callable[..., Any]) -> Any:
        parameters, result = signature.removeprefix(".").split(">")
        identity = f"k8s_{name.replace('.', '_')}_{parameters}"
        is_member = signature.startswith(".")
        return cel.Overload(identity, types[result], [types[p] for p in parameters], is_member, implementation)

    grouped: dict[str, list[Any]] = {}
    for name, signature, implementation in _FUNCTIONS:
        grouped.setdefault(name, []).append(overload(name, signature, implementation))
    return [cel.FunctionDecl(name, overloads) for name, overloads in grouped.items()]


def _tag(kind: str, value: Any) -> Tagged:
    return {f"kubernetes.{kind}": value}


def _untag(value: Any) -> Any:
    """Returns the canonical form in a tagged value; text and numbers stand for themselves."""
    return next(iter(value.values())) if isinstance(value, dict) else value


def _accepts(parser: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        try:
            parser(value)
        except (ValueError, TypeError):
            return False
        return True

    return check


def _quantity(text: str) -> Tagged:
    try:
        return _tag("Quantity", str(Quantity.parse(text).nanos))
    except QuantityError as error:
        raise ValueError(str(error)) from None


def _nanos(value: Any) -> int:
    if isinstance(value, dict):
        return int(_untag(value))
    return Quantity.parse(value).nanos


def _add(one: Any, other: Any) -> Tagged:
    return _tag("Quantity", str(_nanos(one) + _nanos(other)))


def _subtract(one: Any, other: Any) -> Tagged:
    return _tag("Quantity", str(_nanos(one) - _nanos(other)))


def _as_integer(value: Any) -> int:
    whole, rest = divmod(_nanos(value), 10**9)
    if rest or not -(2**63) <= whole < 2**63:
        raise ValueError("cannot convert value to integer")
    return whole


def _order(value: Any) -> Any:
    """Returns something that sorts as the value does: quantities and versions."""
    return _semver_key(_untag(value)) if isinstance(value, dict) and "kubernetes.Semver" in value else _nanos(value)


def _compare(one: Any, other: Any) -> int:
    first, second = _order(one), _order(other)
    return int(first > second) - int(first < second)


def _url(text: str) -> Tagged:
    parts = urlsplit(text)
    if not text or (not parts.scheme and not text.startswith("/")):
        raise ValueError(f"URL parse error during conversion from string: parse {text!r}: invalid URI for request")
    _ = parts.port  # refuses what is no number
    return _tag("URL", text)


def _escaped_path(value: Any) -> str:
    return quote(urlsplit(_untag(value)).path, safe="/%:@!$&'()*+,;=~-._")


def _host(value: Any) -> str:
    return str(urlsplit(_untag(value)).netloc.rpartition("@")[2])


def _port(value: Any) -> str:
    port = urlsplit(_untag(value)).port
    return "" if port is None else str(port)


def _ip(text: str) -> Tagged:
    return _tag("IP", str(ipaddress.ip_address(text)))


def _address(value: Any) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(_untag(value))


def _cidr(text: str) -> Tagged:
    if "/" not in text:
        raise ValueError("network address parse error during conversion from string")
    return _tag("CIDR", str(ipaddress.ip_interface(text)))


def _network(value: Any) -> Any:
    return ipaddress.ip_network(_untag(value), strict=False)


def _contains_cidr(outer: Any, inner: Any) -> bool:
    one, other = _network(outer), _network(inner)
    return one.version == other.version and bool(other.subnet_of(one))


def _semver(text: str) -> Tagged:
    if not _SEMVER.fullmatch(text):
        raise ValueError(f"invalid semantic version: {text}")
    return _tag("Semver", text)


def _semver_key(text: str) -> tuple[Any, ...]:
    found = _SEMVER.fullmatch(text)
    assert found
    pre = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in found[4].split(".")) if found[4] else ((2,),)
    return int(found[1]), int(found[2]), int(found[3]), pre


def _extreme(choose: Callable[[list[Any]], Any], name: str) -> Callable[[list[Any]], Any]:
    def pick(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        return choose(items)

    return pick


def _find(text: str, pattern: str) -> str:
    return next(iter(find_all(pattern, text)), "")


#: Name, parameters>result (a leading dot: the first is the receiver), implementation.
_FUNCTIONS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("quantity", "s>m", _quantity),
    ("isQuantity", "s>b", _accepts(_quantity)),
    ("isInteger", ".m>b", _accepts(_as_integer)),
    ("asInteger", ".m>i", _as_integer),
    ("asApproximateFloat", ".m>f", lambda value: _nanos(value) / 1e9),
    ("sign", ".m>i", lambda value: (_nanos(value) > 0) - (_nanos(value) < 0)),
    ("add", ".mm>m", _add),
    ("add", ".mi>m", _add),
    ("sub", ".mm>m", _subtract),
    ("sub", ".mi>m", _subtract),
    ("isGreaterThan", ".mm>b", lambda one, other: _compare(one, other) > 0),
    ("isLessThan", ".mm>b", lambda one, other: _compare(one, other) < 0),
    ("compareTo", ".mm>i", _compare),
    ("url", "s>m", _url),
    ("isURL", "s>b", _accepts(_url)),
    ("getScheme", ".m>s", lambda value: urlsplit(_untag(value)).scheme),
    ("getHost", ".m>s", _host),
    ("getHostname", ".m>s", lambda value: urlsplit(_untag(value)).hostname or ""),
    ("getPort", ".m>s", _port),
    ("getEscapedPath", ".m>s", _escaped_path),
    ("getQuery", ".m>m", lambda value: parse_qs(urlsplit(_untag(value)).query, keep_blank_values=True)),
    ("ip", "s>m", _ip),
    ("isIP", "s>b", _accepts(_ip)),
    ("ip.isCanonical", "s>b", lambda text: str(ipaddress.ip_address(text)) == text),
    ("family", ".m>i", lambda value: _address(value).version),
    ("isUnspecified", ".m>b", lambda value: _address(value).is_unspecified),
    ("isLoopback", ".m>b", lambda value: _address(value).is_loopback),
    ("isLinkLocalUnicast", ".m>b", lambda value: _address(value).is_link_local),
    ("isLinkLocalMulticast", ".m>b", lambda value: _address(value).is_multicast and _address(value).is_link_local),
    ("isGlobalUnicast", ".m>b", lambda value: not (_address(value).is_multicast or _address(value).is_loopback)),
    ("cidr", "s>m", _cidr),
    ("isCIDR", "s>b", _accepts(_cidr)),
    ("containsIP", ".mm>b", lambda net, address: _address(address) in _network(net)),
    ("containsIP", ".ms>b", lambda net, address: _address(address) in _network(net)),
    ("containsCIDR", ".mm>b", _contains_cidr),
    ("containsCIDR", ".ms>b", _contains_cidr),
    ("prefixLength", ".m>i", lambda net: _network(net).prefixlen),
    ("masked", ".m>m", lambda net: _tag("CIDR", str(_network(net)))),
    ("semver", "s>m", _semver),
    ("isSemver", "s>b", _accepts(_semver)),
    ("major", ".m>i", lambda value: _semver_key(_untag(value))[0]),
    ("minor", ".m>i", lambda value: _semver_key(_untag(value))[1]),
    ("patch", ".m>i", lambda value: _semver_key(_untag(value))[2]),
    ("isSorted", ".l>b", lambda items: all(a <= b for a, b in pairwise(items))),
    ("sum", ".l>d", sum),
    ("min", ".l>d", _extreme(min, "min")),
    ("max", ".l>d", _extreme(max, "max")),
    ("find", ".ss>s", _find),
    ("findAll", ".ss>l", lambda text, pattern: find_all(pattern, text)),
    ("sets.contains", "ll>b", lambda items, wanted: all(each in items for each in wanted)),
    ("sets.intersects", "ll>b", lambda items, others: any(each in items for each in others)),
    ("sets.equivalent", "ll>b", lambda a, b: all(x in b for x in a) and all(x in a for x in b)),
)

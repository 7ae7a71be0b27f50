"""Syntax of Kubernetes names: each function gives what is wrong with a name, in the words of Kubernetes."""

from __future__ import annotations

import re

from isvc.kube.gourl import parse_address
from isvc.kube.names import DNS_1035_LABEL, DNS_LABEL, DNS_SUBDOMAIN

_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_CONFIG_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_ENV_NAME = re.compile(r"[ -<>-~]+")
_PORT_NAME = re.compile(r"[-a-z0-9]+")

_LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with"
    " an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'example.com', regex used for validation is"
    " '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_WILDCARD_WORDS = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower"
    " case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used"
    " for validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_KEY_WORDS = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or"
    " 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_ENV_WORDS = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
    " (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', regex used for validation is '[ -<>-~]+')"
)

_QUALIFIED_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    " (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is"
    " '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    " end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    " '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _too_long(value: str, most: int) -> list[str]:
    return [f"must be no more than {most} bytes"] if len(value.encode()) > most else []


def dns_label(value: str) -> list[str]:
    """Returns what is wrong with a name of at most 63 letters, digits and dashes."""
    if DNS_LABEL.fullmatch(value):
        return _too_long(value, 63)
    return [*_too_long(value, 63), "must not contain dots" if DNS_SUBDOMAIN.fullmatch(value) else _LABEL_WORDS]


def dns_1035(value: str) -> list[str]:
    """Says what is wrong with a label that has to start with a letter."""
    return _too_long(value, 63) + ([] if DNS_1035_LABEL.fullmatch(value) else [_1035_WORDS])


def subdomain(value: str) -> list[str]:
    return _too_long(value, 253) + ([] if DNS_SUBDOMAIN.fullmatch(value) else [_SUBDOMAIN_WORDS])


def wildcard_subdomain(value: str) -> list[str]:
    matches = value.startswith("*.") and DNS_SUBDOMAIN.fullmatch(value[2:])
    return _too_long(value, 253) + ([] if matches else [_WILDCARD_WORDS])


def config_key(value: str) -> list[str]:
    problems = _too_long(value, 253) + ([] if _CONFIG_KEY.fullmatch(value) else [_KEY_WORDS])
    if value == ".":
        problems.append("must not be '.'")
    elif value == "..":
        problems.append("must not be '..'")
    elif value.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def environment_name(value: str) -> list[str]:
    return [] if _ENV_NAME.fullmatch(value) else [_ENV_WORDS]


def port_name(value: str) -> list[str]:
    problems = ["must be no more than 15 characters"] if len(value) > 15 else []
    if not _PORT_NAME.fullmatch(value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= c <= "z" for c in value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def port_number(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]


def path_segment(value: str) -> list[str]:
    """Returns what is wrong with a name that only has to fit between two slashes."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{each}'" for each in "/%" if each in value]


def qualified_name(value: str) -> list[str]:
    """Returns what is wrong with a label's key: a name, perhaps with a domain and a slash before it."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_QUALIFIED_WORDS} {optional}"]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {why}" for why in subdomain(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        problems.append(f"name part {_QUALIFIED_WORDS}")
    return problems


def label_value(value: str) -> list[str]:
    problems = _too_long(value, 63)
    return problems if not value or _QUALIFIED.fullmatch(value) else [*problems, _VALUE_WORDS]


def ip_address(value: str) -> list[str]:
    """Returns what is wrong with an IP address as a name: it has one spelling."""
    if (address := parse_address(value)) is None:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return [] if str(address) == value else ["must be a valid canonical IP address"]

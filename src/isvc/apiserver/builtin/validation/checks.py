"""Checks of single fields that several kinds share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from isvc.apiserver.field_errors import forbidden, invalid, not_supported, required
from isvc.apiserver.objects import names
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.gourl import parse_address
from isvc.kube.objects import Object
from isvc.kube.selectors import LabelSelector, is_label_key, is_label_value

Errors = Iterator[FieldError]
_PERCENT = re.compile(r"[0-9]+%")
_PERCENT_WORDS = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%',"
    " regex used for validation is '[0-9]+%')"
)


def check_name(path: str, value: str, rule: Callable[[str], list[str]]) -> Errors:
    """Checks that a name has a certain shape."""
    for words in rule(value):
        yield invalid(path, value, words)


def required_name(path: str, value: str, rule: Callable[[str], list[str]]) -> Errors:
    """Checks that a name is there, and has a certain shape."""
    if value:
        yield from check_name(path, value, rule)
    else:
        yield required(path)


def one_of(path: str, value: Any, supported: Iterable[str]) -> Errors:
    supported = tuple(supported)
    if value not in supported:
        yield not_supported(path, value, supported)


def not_negative(path: str, value: int | None) -> Errors:
    if value is not None and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def port(path: str, value: Any) -> Errors:
    """Checks a port by number or by name."""
    if isinstance(value, str):
        yield from check_name(path, value, names.port_name)
    elif names.port_number(value or 0):
        yield invalid(path, value or 0, names.port_number(value or 0)[0])


def labels(path: str, values: Object | None) -> Errors:
    for key, value in (values or {}).items():
        if not is_label_key(key):
            yield from check_name(path, key, names.qualified_name)
        if not is_label_value(value):
            yield from check_name(path, value, names.label_value)


def selector(path: str, spec: Object | None) -> Errors:
    if not spec:
        return
    yield from labels(f"{path}.matchLabels", spec.get("matchLabels"))
    for index, each in enumerate(spec.get("matchExpressions") or ()):
        inner = f"{path}.matchExpressions[{index}]"
        operator, values = each.get("operator"), each.get("values")
        if operator in ("In", "NotIn"):
            if not values:
                yield required(f"{inner}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                yield forbidden(f"{inner}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        else:
            yield invalid(f"{inner}.operator", operator or "", "not a valid selector operator")
        if not is_label_key(each.get("key") or ""):
            yield from check_name(f"{inner}.key", each.get("key") or "", names.qualified_name)


def selects(spec: Object, values: Object) -> bool | None:
    """Returns whether a selector matches labels; None when it is no selector."""
    try:
        return LabelSelector.from_spec(spec).matches(values)
    except ValueError:
        return None


def count_or_percent(path: str, value: Any) -> Errors:
    if isinstance(value, str):
        if not _PERCENT.fullmatch(value):
            yield invalid(path, value, _PERCENT_WORDS)
    else:
        yield from not_negative(path, value)


def at_most_all(path: str, value: Any) -> Errors:
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def address(path: str, value: str) -> Errors:
    if parse_address(value) is None:
        yield invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def check_unchanged(path: str, new: Any, old: Any) -> Errors:
    """Checks that a field is as it was."""
    if new != old:
        yield invalid(path, new, "field is immutable")

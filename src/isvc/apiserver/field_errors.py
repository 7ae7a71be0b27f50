"""Complaints about fields in the words of Kubernetes, so that people and tools that know them find them again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import orjson

from isvc.apiserver.resources.strategy import FieldError


class Omitted:
    """Stands for a value that a message does not show."""


OMITTED: Final = Omitted()


_FOR_HTML = {ord(char): f"\\u{ord(char):04x}" for char in "<>&"}


class Struct(dict[str, Any]):
    """A value that Go keeps as a struct: shown with its fields in the order given, not sorted as a map's."""


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, _body("Required value", detail))


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueInvalid", path, _body(_with("Invalid value", value), detail))


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError("FieldValueTypeInvalid", path, _body(_with("Invalid value", value), detail))


def not_supported(path: str, value: Any, supported: Iterable[Any]) -> FieldError:
    names = ", ".join(quote(each if isinstance(each, str) else text(each)) for each in supported)
    return FieldError(
        "FieldValueNotSupported",
        path,
        _body(_with("Unsupported value", value), f"supported values: {names}" if names else ""),
    )


def not_found(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", path, _with("Not found", value))


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", path, _with("Duplicate value", value))


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", path, _body("Forbidden", detail))


def too_long(path: str, most: int) -> FieldError:
    unit = "byte" if most == 1 else "bytes"
    return FieldError("FieldValueTooLong", path, _body("Too long", f"may not be more than {most} {unit}"))


def too_many(path: str, actual: int, most: int) -> FieldError:
    unit = "item" if most == 1 else "items"
    return FieldError("FieldValueTooMany", path, f"Too many: {actual}: must have at most {most} {unit}")


def quote(value: str) -> str:
    return orjson.dumps(value).decode()


def text(value: Any) -> str:
    """Writes a value as Go prints it: numbers bare, strings quoted, the rest as JSON with sorted keys, safe in HTML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if isinstance(value, int):
        return str(value)
    shown = orjson.dumps(value, option=None if isinstance(value, Struct) else orjson.OPT_SORT_KEYS).decode()
    return shown if isinstance(value, str) else shown.translate(_FOR_HTML)


def _with(words: str, value: Any) -> str:
    return words if isinstance(value, Omitted) else f"{words}: {text(value)}"


def _body(words: str, detail: str) -> str:
    return f"{words}: {detail}" if detail else words

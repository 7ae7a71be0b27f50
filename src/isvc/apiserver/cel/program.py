"""Compiled expressions. The CEL runtime is loaded when the first expression is compiled, and each is compiled once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from isvc.apiserver.cel.functions import declarations

_CODE = re.compile(r"^[A-Z_]+: ")
_STRING = re.compile(r"""r?("{3}.*?"{3}|'{3}.*?'{3}|"(\\.|[^"\\])*"|'(\\.|[^'\\])*')""", re.DOTALL)
_VARIABLES = (
    "self",
    "oldSelf",
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "variables",
    "authorizer",
)


class CelError(Exception):
    """An expression does not compile, or fails on the values it is given."""


class Program:
    def __init__(self, source: str, expression: Any) -> None:
        self.source = source
        self.uses_old = re.search(r"\boldSelf\b", _STRING.sub("''", source)) is not None
        self._expression = expression

    @property
    def is_condition(self) -> bool:
        """Whether the expression answers yes or no, as far as is known without values."""
        return self._expression.return_type().name() in ("BOOL", "DYN")

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        try:
            result = self._expression.eval(data=variables)
        except RuntimeError as error:
            raise CelError(_plain(str(error))) from None
        if result.type().name() == "ERROR":
            raise CelError(_plain(str(result.value())))
        return result.plain_value()


@lru_cache(maxsize=4096)
def compile_expression(source: str) -> Program:
    """The program for an expression over self, oldSelf and the variables of admission; raises CelError."""
    try:
        return Program(source, _environment().compile(source))
    except RuntimeError as error:
        raise CelError(_plain(str(error))) from None


@cache
def _environment() -> Any:
    from cel_expr_python import cel  # 30 ms and 14 MB: only servers that meet an expression pay
    from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

    return cel.NewEnv(
        variables=dict.fromkeys(_VARIABLES, cel.Type.DYN),
        extensions=[
            ext_bindings.ExtBindings(),
            ext_encoders.ExtEncoders(),
            ext_math.ExtMath(),
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(),
        ],
        functions=declarations(cel),
    )


def _plain(message: str) -> str:
    """The runtime's message in the words of cel-go, as far as they are known."""
    message = _CODE.sub("", message.removesuffix(" [INVALID_ARGUMENT]"))
    if found := re.match(r"Key not found in map : \"?(.*?)\"?$", message):
        return f"no such key: {found[1]}"
    if found := re.match(r"Index error: index=(-?\d+) size=\d+", message):
        return f"index out of bounds: {found[1]}"
    if message.startswith("divide by zero"):
        return "division by zero"
    if message.startswith("No matching overloads"):
        return "no such overload"
    return message

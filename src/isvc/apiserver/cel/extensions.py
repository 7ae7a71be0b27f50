"""Which extensions of the CEL runtime an expression uses: each is a library of 3 MB, and most rules use none."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, Final

Names = frozenset[str]

_STRINGS = (
    "charAt indexOf join lastIndexOf lowerAscii upperAscii replace split substring trim reverse format quote strings"
)
_OPTIONALS = "optional optMap optFlatMap orValue or hasValue value first last unwrap unwrapOpt"

# By what an expression has to contain to mean a function or macro of theirs. Too much is found rather than too little.
_MARKS: Final = {
    "Bindings": re.compile(r"\bcel\b"),
    "Encoders": re.compile(r"\bbase64\b"),
    "Math": re.compile(r"\bmath\b"),
    "Optional": re.compile(rf"[.\[{{,]\s*\?|\boptional|\b({_OPTIONALS.replace(' ', '|')})\s*\("),
    "Strings": re.compile(rf"\bstrings\b|\b({_STRINGS.replace(' ', '|')})\s*\("),
}


def used_in(source: str) -> Names:
    return frozenset(name for name, mark in _MARKS.items() if mark.search(source))


def load(names: Names) -> list[Any]:
    modules = ((name, import_module(f"cel_expr_python.ext.ext_{name.lower()}")) for name in sorted(names))
    return [getattr(module, f"Ext{name}")() for name, module in modules]

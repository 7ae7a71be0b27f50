"""Go templates, as far as Kubernetes configuration uses them: fields, variables, `if`, `with`, `range`, comparisons.

Runtimes carry placeholders such as `{{.Name}}`, and the ingress settings carry templates of domains and paths; both
were written for Go's text/template. Whatever is not supported is refused by name, never passed through silently.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any


class TemplateError(Exception):
    """The template cannot be parsed, or asks for something that its values do not have."""


class Fields(dict[str, Any]):
    """A Go struct: unlike a map, asking it for a field that it does not have is an error."""


def render(template: str, values: Mapping[str, Any], *, missing: str = "<no value>", escape: bool = False) -> str:
    """Fill the template in. `missing` stands for absent map keys; `escape` escapes values as Go's html/template."""
    scope = _Scope(root=values, missing=missing, escape=escape)
    out: list[str] = []
    for node in _parse(template):
        node(scope, values, out)
    return "".join(out)


@dataclass(frozen=True, slots=True)
class _Scope:
    root: Any
    missing: str
    escape: bool
    variables: dict[str, Any] = field(default_factory=dict)

    def block(self) -> _Scope:
        """What is declared inside a block is gone after it."""
        return replace(self, variables=dict(self.variables))


class _Html(str):
    """Text that is escaped already."""

    __slots__ = ()


class _Missing:
    """What a map answers for a key that it does not have."""


_MISSING = _Missing()
_Node = Callable[[_Scope, Any, list[str]], None]
_ACTION = re.compile(r"\{\{(?:- )?(.*?)(?: -)?\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*(?:("(?:\\.|[^"\\])*")|(`[^`]*`)|(-?\d+)|(\$?(?:\.?[A-Za-z_]\w*)+|\$|\.)|([()|,])|(\S))')
_DECLARATION = re.compile(r"\s*(\$\w+)(?:\s*,\s*(\$\w+))?\s*:=(.*)", re.DOTALL)
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;", "+": "&#43;"}


@dataclass(slots=True)
class _Block:
    """An `if`, `with` or `range` that has not met its `end` yet."""

    keyword: str
    condition: _Expression | None
    declares: tuple[str, ...] = ()
    body: list[_Node] = field(default_factory=list)
    otherwise: list[_Node] | None = None
    nested: int = 0  # how many `else if` this block was opened by

    @property
    def open(self) -> list[_Node]:
        return self.body if self.otherwise is None else self.otherwise


@lru_cache(maxsize=256)
def _parse(template: str) -> Sequence[_Node]:
    stack = [_Block("", None)]
    for literal, action in _pieces(template):
        if literal:
            stack[-1].open.append(_text(literal))
        if action is None:
            continue
        keyword, _, rest = action.partition(" ")
        if keyword in ("if", "with", "range"):
            stack.append(_block(keyword, rest))
        elif keyword == "else":
            _otherwise(stack, rest.strip())
        elif action == "end":
            _close(stack)
        elif not action.startswith("/*"):
            declares, source = _declared(action)
            value = _expression(source)
            stack[-1].open.append(_assignment(declares, value) if declares else _value(value))
    if len(stack) > 1:
        raise TemplateError(f"{{{{{stack[-1].keyword}}}}} has no end")
    return stack[0].body


def _pieces(template: str) -> Iterable[tuple[str, str | None]]:
    position, trim = 0, False
    for match in _ACTION.finditer(template):
        literal = template[position : match.start()]
        literal = literal.lstrip() if trim else literal
        yield literal.rstrip() if match[0].startswith("{{- ") else literal, match[1].strip()
        position, trim = match.end(), match[0].endswith(" -}}")
    rest = template[position:]
    if "{{" in rest:
        raise TemplateError("unclosed action")
    yield rest.lstrip() if trim else rest, None


def _block(keyword: str, source: str) -> _Block:
    declares, condition = _declared(source)
    return _Block(keyword, _expression(condition), declares)


def _declared(source: str) -> tuple[tuple[str, ...], str]:
    """The variables that a pipeline declares, and the pipeline."""
    match = _DECLARATION.match(source)
    return (tuple(filter(None, match.groups()[:2])), match[3]) if match else ((), source)


def _otherwise(stack: list[_Block], rest: str) -> None:
    block = stack[-1]
    if not block.keyword or block.otherwise is not None:
        raise TemplateError("unexpected {{else}}")
    block.otherwise = []
    if rest:
        keyword, _, condition = rest.partition(" ")
        stack.append(replace(_block(keyword, condition), nested=block.nested + 1))


def _close(stack: list[_Block]) -> None:
    for _ in range(stack[-1].nested + 1):
        block = stack.pop()
        if not block.keyword or block.condition is None:
            raise TemplateError("unexpected {{end}}")
        stack[-1].open.append(_branch(block, block.condition))


def _text(literal: str) -> _Node:
    return lambda scope, dot, out: out.append(literal)


def _assignment(names: tuple[str, ...], expression: _Expression) -> _Node:
    if len(names) > 1:
        raise TemplateError("too many declarations")

    def node(scope: _Scope, dot: Any, out: list[str]) -> None:
        scope.variables[names[0]] = expression(scope, dot)

    return node


def _value(expression: _Expression) -> _Node:
    def node(scope: _Scope, dot: Any, out: list[str]) -> None:
        value = expression(scope, dot)
        text = _printed(value, scope)
        out.append(_escaped(text) if scope.escape and not isinstance(value, _Html) else text)

    return node


def _escaped(text: str) -> str:
    return "".join(_HTML.get(c, c) for c in text)


def _branch(block: _Block, condition: _Expression) -> _Node:
    def node(scope: _Scope, dot: Any, out: list[str]) -> None:
        value = condition(scope, dot)
        holds = _truth(value)
        for key, inner in _rounds(block.keyword, value, dot) if holds else [(None, dot)]:
            local = scope.block()
            if holds:
                told = inner if block.keyword == "range" else value
                local.variables.update(zip(reversed(block.declares), (told, key), strict=False))
            for child in block.body if holds else block.otherwise or ():
                child(local, inner, out)

    return node


def _rounds(keyword: str, value: Any, dot: Any) -> list[tuple[Any, Any]]:
    """How often a body runs, and with which key and dot. Maps are walked in the order of their keys."""
    if keyword != "range":
        return [(None, value if keyword == "with" else dot)]
    return sorted(value.items()) if isinstance(value, Mapping) else list(enumerate(value))


def _printed(value: Any, scope: _Scope) -> str:
    if isinstance(value, _Missing) or value is None:
        return scope.missing
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _truth(value: Any) -> bool:
    return not isinstance(value, _Missing) and bool(value)


# -- expressions ----------------------------------------------------------------------------------------------------

_Expression = Callable[[_Scope, Any], Any]


def _expression(source: str) -> _Expression:
    tokens = _tokens(source)
    expression = _pipeline(tokens)
    if tokens:
        raise TemplateError(f"unexpected {tokens[0]!r}")
    return expression


def _tokens(source: str) -> list[str]:
    tokens: list[str] = []
    position = 0
    source = source.strip()
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match[6]:
            raise TemplateError(f"unexpected {source[position:].strip()[:10]!r}")
        tokens.append(match[0].strip())
        position = match.end()
    return tokens


def _pipeline(tokens: list[str]) -> _Expression:
    expression = _command(tokens, None)
    while tokens and tokens[0] == "|":
        tokens.pop(0)
        expression = _command(tokens, expression)
    return expression


def _command(tokens: list[str], piped: _Expression | None) -> _Expression:
    if not tokens:
        raise TemplateError("missing value")
    if (function := _FUNCTIONS.get(tokens[0])) is not None:
        tokens.pop(0)
        arguments: list[_Expression] = []
        while tokens and tokens[0] not in ("|", ")"):
            arguments.append(_operand(tokens))
        if piped is not None:
            arguments.append(piped)
        return lambda scope, dot: _call(function, [argument(scope, dot) for argument in arguments], scope)
    if piped is not None:
        raise TemplateError(f"can't give an argument to {tokens[0]!r}")
    return _operand(tokens)


def _operand(tokens: list[str]) -> _Expression:
    word = tokens.pop(0)
    if word == "(":
        inner = _pipeline(tokens)
        if not tokens or tokens.pop(0) != ")":
            raise TemplateError("unclosed parenthesis")
        return inner
    if word[0] in '"`':
        literal = word[1:-1] if word[0] == "`" else re.sub(r"\\(.)", r"\1", word[1:-1])
        return lambda scope, dot: literal
    if word.lstrip("-").isdigit():
        return lambda scope, dot: int(word)
    if word in ("true", "false"):
        return lambda scope, dot: word == "true"
    if word[0] in ".$":
        variable, *path = word.split(".")
        return lambda scope, dot: _walk(_start(variable, scope, dot), [part for part in path if part])
    raise TemplateError(f"function {word!r} not defined")


def _start(variable: str, scope: _Scope, dot: Any) -> Any:
    if variable in ("", "$"):
        return scope.root if variable else dot
    if variable not in scope.variables:
        raise TemplateError(f"undefined variable {variable!r}")
    return scope.variables[variable]


def _walk(value: Any, path: list[str]) -> Any:
    for step in path:
        if isinstance(value, Fields):
            if step not in value:
                raise TemplateError(f"can't evaluate field {step}")
            value = value[step]
        elif isinstance(value, Mapping):
            value = value.get(step, _MISSING)
        else:
            raise TemplateError(f"can't evaluate field {step} of {value!r}")
    return value


def _call(function: Callable[..., Any], arguments: list[Any], scope: _Scope) -> Any:
    try:
        return function(*(scope.missing if isinstance(a, _Missing) else a for a in arguments))
    except (TypeError, ValueError, LookupError) as error:
        raise TemplateError(f"error calling function: {error}") from error


def _index(value: Any, *keys: Any) -> Any:
    for key in keys:
        value = value.get(key, "") if isinstance(value, Mapping) else value[key]
    return value


def _and(*values: Any) -> Any:
    return next((value for value in values if not value), values[-1])


def _or(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


def _printf(text: str, *values: Any) -> str:
    told = tuple(str(value).lower() if isinstance(value, bool) else value for value in values)
    return text.replace("%v", "%s").replace("%q", '"%s"') % told


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "index": _index,
    "and": _and,
    "or": _or,
    "not": lambda value: not value,
    "len": len,
    "eq": lambda first, *others: any(first == other for other in others),
    "ne": lambda first, second: first != second,
    "lt": lambda first, second: first < second,
    "le": lambda first, second: first <= second,
    "gt": lambda first, second: first > second,
    "ge": lambda first, second: first >= second,
    "html": lambda *values: _Html(_escaped("".join(map(str, values)))),
    "print": lambda *values: "".join(map(str, values)),
    "printf": _printf,
}

"""A parsed template filled in with values, as Go's text/template does it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from isvc.serving.templates import nodes
from isvc.serving.templates.errors import TemplateError
from isvc.serving.templates.functions import Function, Html, Unfit, escape_html
from isvc.serving.templates.printing import to_text
from isvc.serving.templates.values import (
    ABSENT,
    ANY,
    BOOL,
    FLOAT64,
    INT,
    REFLECTED,
    STRING,
    Absent,
    Maybe,
    Piped,
    Type,
    Value,
    indirect,
    is_true,
    size_of,
    through_pointer,
    untyped_value,
)

_MOST_STEPS = 50_000
_MOST_OUTPUT = 8 * 2**20
_DEEPEST = 100
"""A template is text from somebody else: it gets so much work, room and depth, and no more."""


class _Break(Exception):
    """A `break` on its way to its `range`."""


class _Continue(Exception):
    """A `continue` on its way to its `range`."""


class Execution:
    def __init__(
        self, template: nodes.Template, functions: Mapping[str, Function], *, strict: bool, missing: str, escape: bool
    ) -> None:
        self.template, self.functions = template, functions
        self.strict, self.missing, self.escape = strict, missing, escape
        self.variables: list[tuple[str, Maybe]] = []
        self.root: Maybe = None
        self.reached: dict[tuple[str, ...], Maybe] = {}  # from the root; presets ask for the same few fields often
        self.printed: dict[str, str] = {}  # from the root, by the words of an action
        self.out: list[str] = []
        self.steps = self.written = self.handled = self.depth = 0
        self.at = 0

    def run(self, root: Value) -> str:
        self.root, self.variables = root, [("$", root)]
        try:
            self.walk(root, self.template.body)
        except RecursionError:
            raise self.fault("nested too deeply") from None
        return "".join(self.out)

    def fault(self, problem: str) -> TemplateError:
        return TemplateError(problem, self.at)

    def write(self, text: str) -> None:
        self.written += len(text)
        if self.written > _MOST_OUTPUT:
            raise self.fault("the template makes too much text")
        self.out.append(text)

    def count(self, steps: int) -> None:
        self.steps += steps
        if self.steps > _MOST_STEPS:
            raise self.fault("the template takes too long")

    def handle(self, *values: Maybe) -> None:
        """Counts what functions are given and return: one call may walk through megabytes."""
        self.handled += sum(map(size_of, values))
        if self.handled > _MOST_OUTPUT:
            raise self.fault("the template makes too much text")

    # -- nodes

    def walk(self, dot: Maybe, body: Sequence[nodes.Node]) -> None:
        self.count(len(body))
        for node in body:
            self.at = node.at
            match node:
                case nodes.Text():
                    self.write(node.text)
                case nodes.Action():
                    self.action(dot, node)
                case nodes.Branch(keyword="range"):
                    self.range(dot, node)
                case nodes.Branch():
                    self.branch(dot, node)
                case nodes.Call():
                    self.call_template(dot, node)
                case nodes.Leave():
                    raise _Break if node.keyword == "break" else _Continue

    def action(self, dot: Maybe, node: nodes.Action) -> None:
        words = node.words if dot is self.root else ""
        if not words or words not in self.printed:
            self.printed[words] = self.text_of(dot, node.pipeline)
        self.write(self.printed[words])

    def text_of(self, dot: Maybe, pipeline: nodes.Pipeline) -> str:
        value = self.pipeline(dot, pipeline)
        if pipeline.declares:
            return ""
        text, is_html = to_text(value, self.missing), value is not None and isinstance(value.data, Html)
        return escape_html(text) if self.escape and not is_html else text

    def branch(self, dot: Maybe, node: nodes.Branch) -> None:
        mark = len(self.variables)
        value = self.pipeline(dot, node.pipeline)
        if is_true(value):
            self.walk(value if node.keyword == "with" else dot, node.body)
        else:
            self.walk(dot, node.otherwise)
        del self.variables[mark:]

    def range(self, dot: Maybe, node: nodes.Branch) -> None:
        mark = len(self.variables)
        pipeline = node.pipeline
        value = self.pipeline(dot, pipeline)
        inner = len(self.variables)
        ran = False
        try:
            for index, elem in self.rounds(value, len(pipeline.declares)):
                ran = True
                self.count(1)
                self.set_loop_variables(pipeline, index, elem)
                try:
                    self.walk(elem, node.body)
                except _Continue:
                    pass
                except _Break:
                    break
                del self.variables[inner:]
        finally:
            del self.variables[inner:]
        if not ran:
            self.walk(dot, node.otherwise)
        del self.variables[mark:]

    def rounds(self, value: Maybe, declared: int) -> Iterator[tuple[Maybe, Maybe]]:
        if value is None:
            return iter(())
        value = indirect(value)
        if value.type.kind in ("int", "uint"):
            if declared > 1:
                raise self.fault(f"can't use {value.data} to iterate over more than one variable")
            return ((None, Value(value.type, number)) for number in range(max(value.data, 0)))
        if value.type.kind not in ("map", "slice"):
            raise self.fault(f"range can't iterate over {to_text(value)}")
        return value.items()

    def set_loop_variables(self, pipeline: nodes.Pipeline, index: Maybe, elem: Maybe) -> None:
        names = pipeline.declares
        values = (elem,) if len(names) == 1 else (index, elem)
        for offset, (name, value) in enumerate(zip(names, values, strict=False)):
            if pipeline.assigns:
                self.assign(name, value)
            else:
                self.variables[len(self.variables) - len(names) + offset] = (name, value)

    def call_template(self, dot: Maybe, node: nodes.Call) -> None:
        body = self.template.defined.get(node.name)
        if body is None:
            raise self.fault(f"template {node.name!r} not defined")
        if self.depth == _DEEPEST:
            raise self.fault(f"exceeded maximum template depth ({_DEEPEST})")
        value = self.pipeline(dot, node.pipeline) if node.pipeline is not None else None
        around, self.variables = self.variables, [("$", value)]
        self.depth += 1
        self.walk(value, body)
        self.depth -= 1
        self.variables = around

    # -- variables

    def assign(self, name: str, value: Maybe) -> None:
        for position in reversed(range(len(self.variables))):
            if self.variables[position][0] == name:
                self.variables[position] = (name, value)
                return
        raise self.fault(f"undefined variable: {name}")

    def variable(self, name: str) -> Maybe:
        for known, value in reversed(self.variables):
            if known == name:
                return value
        raise self.fault(f"undefined variable: {name}")

    # -- pipelines

    def pipeline(self, dot: Maybe, pipeline: nodes.Pipeline) -> Maybe:
        value: Piped = ABSENT
        for command in pipeline.commands:
            self.at = command.at
            value = self.command(dot, command.words, value)
        assert not isinstance(value, Absent)
        for name in pipeline.declares:
            if pipeline.assigns:
                self.assign(name, value)
            else:
                self.variables.append((name, value))
        return value

    def command(self, dot: Maybe, words: Sequence[nodes.Operand], piped: Piped) -> Maybe:
        first, arguments = words[0], words[1:]
        self.at = first.at
        self.count(len(words))
        match first:
            case nodes.Function():
                return self.call(dot, first.name, self.functions[first.name], arguments, piped)
            case nodes.Field() | nodes.Chain():
                return self.chain(dot, first, arguments, piped)
            case nodes.Variable() if first.names:
                return self.chain(dot, first, arguments, piped)
        if arguments or not isinstance(piped, Absent):
            raise self.fault("can't give argument to non-function")
        if isinstance(first, nodes.Nil):
            raise self.fault("nil is not a command")
        return self.operand(dot, first)

    def operand(self, dot: Maybe, node: nodes.Operand) -> Maybe:
        """Returns an operand where any type will do."""
        self.at = node.at
        match node:
            case nodes.Dot():
                return dot
            case nodes.Nil():
                return None
            case nodes.Bool():
                return Value(BOOL, node.value)
            case nodes.String():
                return Value(STRING, node.value)
            case nodes.Number():
                return self.constant(node)
            case nodes.Function():
                return self.call(dot, node.name, self.functions[node.name], (), ABSENT)
            case nodes.Pipeline():
                return self.pipeline(dot, node)
            case nodes.Variable() if not node.names:
                return self.variable(node.name)
        return self.chain(dot, node, (), ABSENT)

    def constant(self, node: nodes.Number) -> Value:
        if node.value.looks_floating:
            return Value(FLOAT64, node.value.floating)
        if node.value.integer is None:
            raise self.fault(f"{node.text} overflows int")
        return Value(INT, node.value.integer)

    # -- fields

    def chain(
        self,
        dot: Maybe,
        node: nodes.Field | nodes.Variable | nodes.Chain,
        arguments: Sequence[nodes.Operand],
        piped: Piped,
    ) -> Maybe:
        match node:
            case nodes.Field():
                value = dot
            case nodes.Variable():
                value = self.variable(node.name)
            case nodes.Chain():
                value = self.operand(dot, node.start)
        self.at = node.at
        has_arguments = bool(arguments) or not isinstance(piped, Absent)
        if value is not self.root or has_arguments:
            return self.fields(value, node.names, has_arguments)
        if node.names not in self.reached:
            self.reached[node.names] = self.fields(value, node.names, has_arguments)
        return self.reached[node.names]

    def fields(self, value: Maybe, names: tuple[str, ...], has_arguments: bool) -> Maybe:
        for position, name in enumerate(names):
            value = self.field(value, name, has_arguments and position == len(names) - 1)
        return value

    def field(self, receiver: Maybe, name: str, has_arguments: bool) -> Maybe:
        if receiver is None:
            if self.strict:
                raise self.fault(f'nil data; no entry for key "{name}"')
            return None
        value = indirect(receiver)
        struct = value.type.elem if value.type.kind == "pointer" else value.type
        assert struct is not None
        if (found := struct.method(name)) and (value.place is not None or through_pointer(value, found[0])):
            return self.call_method(value, found, name, has_arguments)
        way = struct.find(name)
        if way and value.type.kind == "pointer":
            raise self.fault(f"nil pointer evaluating {receiver.type.name}.{name}: it is not always set; ask with if")
        if has_arguments and (way or value.type.kind == "map"):
            raise self.fault(f"{name} has arguments but cannot be invoked as function")
        if way:
            return value.follow(way)
        if value.type.kind == "map" and value.type.key is STRING:
            return self.entry(value, name)
        near = get_close_matches(name, {each.name for each in struct.all_fields()}, 1, 0.7)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise self.fault(f"can't evaluate field {name} in type {receiver.type.name}{hint}")

    def entry(self, value: Value, name: str) -> Maybe:
        data = value.data or {}
        if name not in data:
            if self.strict:
                raise self.fault(f'map has no entry for key "{name}"; use index for one that may be missing')
            return None
        elem = value.type.elem
        assert elem is not None
        return untyped_value(data[name]) if elem is ANY else Value(elem, data[name])

    def call_method(self, value: Value, found: Any, name: str, has_arguments: bool) -> Maybe:
        way, method = found
        if has_arguments:
            raise self.fault(f"wrong number of args for {name}: want 0")
        if way and value.type.kind == "pointer":
            raise self.fault(f"nil pointer evaluating {value.type.name}.{name}")
        end = indirect(value.follow(way))
        data = method.call(end.data)
        return Value(method.result, method.result.zero() if data is None else data)

    # -- calls

    def call(
        self, dot: Maybe, name: str, function: Function, arguments: Sequence[nodes.Operand], piped: Piped
    ) -> Maybe:
        fixed, more = function.parameters, function.more
        given = len(arguments) + (not isinstance(piped, Absent))
        if given < len(fixed) or (given > len(fixed) and more is None):
            raise self.fault(
                f"wrong number of args for {name}: want {'at least ' if more else ''}{len(fixed)} got {given}"
            )
        if name in ("and", "or"):
            return self.shortcut(dot, name, arguments, piped)
        types = [*fixed, *([more or ANY] * (given - len(fixed)))]
        at = self.at
        values = [self.argument(dot, kind, node) for kind, node in zip(types, arguments, strict=False)]
        if not isinstance(piped, Absent):
            values.append(self.fitting(piped, types[-1]))
        self.at = at
        self.handle(*values)
        try:
            result = function.call(*values)
        except Unfit as error:
            raise self.fault(f"error calling {name}: {error}") from error
        self.handle(result)
        return result

    def shortcut(self, dot: Maybe, name: str, arguments: Sequence[nodes.Operand], piped: Piped) -> Maybe:
        value: Maybe = None
        for node in arguments:
            value = self.argument(dot, REFLECTED, node)
            if is_true(value) == (name == "or"):
                return value
        return value if isinstance(piped, Absent) else piped

    def argument(self, dot: Maybe, kind: Type, node: nodes.Operand) -> Maybe:
        self.at = node.at
        if kind is ANY or kind is REFLECTED:
            return self.operand(dot, node)
        match node:
            case nodes.Nil():
                raise self.fault(f"cannot assign nil to {kind.name}")
            case nodes.String() if kind.kind == "string":
                return Value(kind, node.value)
            case nodes.Number() if kind.kind == "int" and node.value.integer is not None:
                return Value(kind, node.value.integer)
            case nodes.String() | nodes.Number() | nodes.Bool():
                raise self.fault(f"expected {kind.name}")
        return self.fitting(self.operand(dot, node), kind)

    def fitting(self, value: Maybe, kind: Type) -> Maybe:
        """Returns the value as an argument of a type, through a pointer if that is what it takes."""
        if kind is ANY or kind is REFLECTED:
            return value
        if value is None:
            raise self.fault(f"invalid value; expected {kind.name}")
        if value.type is kind:
            return value
        if value.type.kind == "pointer" and value.type.elem is kind:
            if value.data is None:
                raise self.fault(f"dereference of nil pointer of type {kind.name}")
            return value.target()
        raise self.fault(f"wrong type for value; expected {kind.name}; got {value.type.name}")

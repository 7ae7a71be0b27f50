"""Tokens into a tree, by the grammar of Go's text/template."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NoReturn

from isvc.serving.templates import literals, nodes
from isvc.serving.templates.errors import TemplateError
from isvc.serving.templates.lexer import Token, tokens

_OPERANDS = frozenset(("bool", "character", "dot", "field", "identifier", "number", "nil", "string", "variable", "("))
_LITERALS = (nodes.Bool, nodes.Dot, nodes.Nil, nodes.Number, nodes.String)
_MOST_TOKENS = 20_000
_MOST_VARIABLES = 500
"""Templates come from strangers: a preset that is shipped has 500 tokens and a variable."""


def parse(template: str, functions: Collection[str]) -> nodes.Template:
    """Returns the tree of a template that may call these functions."""
    parser = _Parser(tokens(template), functions)
    try:
        body = parser.body(None)
    except RecursionError:
        raise TemplateError("nested too deeply") from None
    return nodes.Template(body, parser.defined)


class _Parser:
    def __init__(self, stream: Iterator[Token], functions: Collection[str]) -> None:
        self.stream, self.read, self.position = stream, list[Token](), 0
        self.functions = functions
        self.variables = ["$"]
        self.ranges = 0
        self.defined: dict[str, tuple[nodes.Node, ...]] = {}
        self.stopped_by = ""  # "else" or "end", whichever ended the last body

    # -- tokens

    def peek(self) -> Token:
        if self.position == len(self.read):
            token = next(self.stream)
            if len(self.read) == _MOST_TOKENS or len(self.variables) > _MOST_VARIABLES:
                raise TemplateError("the template is too long", token.at)
            self.read.append(token)
        return self.read[self.position]

    def next(self) -> Token:
        token = self.peek()
        self.position += token.kind != "end of template"
        return token

    def skip_space(self) -> None:
        while self.peek().kind == "space":
            self.position += 1

    def peek_word(self) -> Token:
        self.skip_space()
        return self.peek()

    def next_word(self) -> Token:
        self.skip_space()
        return self.next()

    def expect(self, kind: str, context: str) -> Token:
        token = self.next_word()
        if token.kind != kind:
            self.unexpected(token, context)
        return token

    def unexpected(self, token: Token, context: str) -> NoReturn:
        raise TemplateError(f"unexpected {token} in {context}", token.at)

    # -- text and actions

    def body(self, opened: Token | None) -> tuple[nodes.Node, ...]:
        """Returns everything up to the `else` or `end` of what was opened, or else to the end of the template."""
        found: list[nodes.Node] = []
        while (token := self.next_word()).kind != "end of template":
            if token.kind == "text":
                found.append(nodes.Text(token.at, token.text))
                continue
            word = self.peek_word()
            if word.kind in ("else", "end"):
                if opened is None:
                    raise TemplateError(f"unexpected {{{{{word.kind}}}}}", word.at)
                self.stopped_by = word.kind
                self.next()
                if word.kind == "end" or self.peek_word().kind not in ("if", "with"):
                    self.expect("}}", word.kind)
                return tuple(found)
            if word.kind == "define" and opened is None:
                self.next()
                self.definition(word)
                continue
            found.append(self.action(word))
        if opened is not None:
            raise TemplateError(f"{{{{{opened.kind}}}}} has no {{{{end}}}}", opened.at)
        return tuple(found)

    def action(self, word: Token) -> nodes.Node:
        match word.kind:
            case "if" | "with" | "range":
                self.next()
                return self.branch(word)
            case "template":
                self.next()
                return self.call(word)
            case "block":
                self.next()
                return self.block(word)
            case "break" | "continue":
                self.next()
                self.expect("}}", f"{{{{{word.kind}}}}}")
                if not self.ranges:
                    raise TemplateError(f"{{{{{word.kind}}}}} outside {{{{range}}}}", word.at)
                return nodes.Leave(word.at, word.kind)
        start = self.position
        pipeline = self.pipeline("command", "}}")
        read = self.read[start : self.position]
        has_variables = any(token.kind == "variable" for token in read)
        return nodes.Action(word.at, pipeline, "" if has_variables else "".join(token.text for token in read))

    def branch(self, word: Token) -> nodes.Branch:
        known, keyword = len(self.variables), word.kind
        pipeline = self.pipeline(keyword, "}}")
        self.ranges += keyword == "range"
        body = self.body(word)
        self.ranges -= keyword == "range"
        otherwise: tuple[nodes.Node, ...] = ()
        if self.stopped_by == "else":
            following = self.peek()
            if following.kind == keyword and keyword in ("if", "with"):
                self.next()
                otherwise = (self.branch(following),)
            else:
                otherwise = self.otherwise(word, following)
        del self.variables[known:]
        return nodes.Branch(word.at, keyword, pipeline, body, otherwise)

    def otherwise(self, word: Token, following: Token) -> tuple[nodes.Node, ...]:
        if following.kind in ("if", "with"):
            self.unexpected(following, "input")
        found = self.body(word)
        if self.stopped_by != "end":
            raise TemplateError("expected end; found {{else}}", following.at)
        return found

    def call(self, word: Token) -> nodes.Call:
        name = self.template_name("template clause")
        if self.peek_word().kind == "}}":
            self.next()
            return nodes.Call(word.at, name, None)
        return nodes.Call(word.at, name, self.pipeline("template clause", "}}"))

    def definition(self, word: Token) -> None:
        name = self.template_name("define clause")
        self.expect("}}", "define clause")
        self.define(word, name)

    def block(self, word: Token) -> nodes.Call:
        name = self.template_name("block clause")
        pipeline = self.pipeline("block clause", "}}")
        self.define(word, name)
        return nodes.Call(word.at, name, pipeline)

    def define(self, word: Token, name: str) -> None:
        """Parses a defined template, which sees what is its own: no variables from around it."""
        at, around, ranges = word.at, self.variables, self.ranges
        self.variables, self.ranges = ["$"], 0
        body = self.body(word)
        self.variables, self.ranges = around, ranges
        if self.stopped_by != "end":
            raise TemplateError("unexpected {{else}} in a definition", at)
        if _is_empty(body) and name in self.defined:
            return
        if not _is_empty(self.defined.get(name, ())):
            raise TemplateError(f"multiple definition of template {name!r}", at)
        self.defined[name] = body

    def template_name(self, context: str) -> str:
        token = self.expect("string", context)
        return literals.string(token.text, token.at)

    # -- pipelines

    def pipeline(self, context: str, end: str) -> nodes.Pipeline:
        at = self.peek_word().at
        declares, assigns = self.declarations(context)
        commands: list[nodes.Command] = []
        while (token := self.peek_word()).kind != end:
            if token.kind not in _OPERANDS:
                self.unexpected(token, context)
            commands.append(self.command())
        self.next()
        if not commands:
            raise TemplateError(f"missing value for {context}", at)
        for stage, command in enumerate(commands[1:], 2):
            if isinstance(command.words[0], _LITERALS):
                raise TemplateError(f"non executable command in pipeline stage {stage}", command.at)
        return nodes.Pipeline(at, tuple(commands), declares, assigns)

    def declarations(self, context: str) -> tuple[tuple[str, ...], bool]:
        declares: list[str] = []
        while (variable := self.peek_word()).kind == "variable":
            back = self.position
            self.next()
            sign = self.next_word()
            if sign.kind in (":=", "="):
                declares.append(variable.text)
                self.variables.append(variable.text)
                return tuple(declares), sign.kind == "="
            if sign.text != ",":
                self.position = back
                break
            declares.append(variable.text)
            self.variables.append(variable.text)
            if context != "range" or len(declares) > 1:
                raise TemplateError(f"too many declarations in {context}", sign.at)
            if self.peek_word().kind not in ("variable", "}}", ")"):
                raise TemplateError("range can only initialize variables", sign.at)
        return tuple(declares), False

    def command(self) -> nodes.Command:
        at, words = self.peek_word().at, []
        while True:
            self.skip_space()
            if (word := self.operand()) is not None:
                words.append(word)
            token = self.peek()
            if token.kind == "space":
                continue
            if token.kind == "|":
                self.next()
            elif token.kind not in ("}}", ")"):
                self.unexpected(token, "operand")
            break
        if not words:
            raise TemplateError("empty command", at)
        return nodes.Command(at, tuple(words))

    def operand(self) -> nodes.Operand | None:
        start = self.term()
        if start is None or self.peek().kind != "field":
            return start
        at, names = self.peek().at, []
        while self.peek().kind == "field":
            names.append(self.next().text[1:])
        if isinstance(start, nodes.Field):
            return nodes.Field(start.at, (*start.names, *names))
        if isinstance(start, nodes.Variable):
            return nodes.Variable(start.at, start.name, (*start.names, *names))
        if isinstance(start, _LITERALS):
            raise TemplateError("unexpected . after a value", at)
        return nodes.Chain(at, start, tuple(names))

    def term(self) -> nodes.Operand | None:
        token = self.peek_word()
        if token.kind not in _OPERANDS:
            return None
        self.next()
        match token.kind:
            case "identifier":
                if token.text not in self.functions:
                    raise TemplateError(f'function "{token.text}" not defined', token.at)
                return nodes.Function(token.at, token.text)
            case "variable":
                if token.text not in self.variables:
                    raise TemplateError(f'undefined variable "{token.text}"', token.at)
                return nodes.Variable(token.at, token.text)
            case "field":
                return nodes.Field(token.at, (token.text[1:],))
            case "(":
                return self.pipeline("parenthesized pipeline", ")")
        return _literal(token)


def _literal(token: Token) -> nodes.Literal:
    match token.kind:
        case "dot":
            return nodes.Dot(token.at)
        case "nil":
            return nodes.Nil(token.at)
        case "bool":
            return nodes.Bool(token.at, token.text == "true")
        case "string":
            return nodes.String(token.at, literals.string(token.text, token.at))
        case "character":
            return nodes.Number(token.at, literals.character(token.text, token.at), token.text)
    return nodes.Number(token.at, literals.number(token.text, token.at), token.text)


def _is_empty(body: tuple[nodes.Node, ...]) -> bool:
    return all(isinstance(node, nodes.Text) and not node.text.strip() for node in body)

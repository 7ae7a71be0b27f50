"""Reference of programs and commands: every flag, its default and what it does, asked from the parsers themselves."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import click
from tools.site.markdown import code, table

from isvc.cli import main as isvc
from isvc.pods.agent.flags import parser as agent_parser
from isvc.pods.llmserver.flags import parser as llmserver_parser
from isvc.pods.modelserver.program import parser as modelserver_parser
from isvc.pods.router.program import parser as router_parser
from isvc.programs import isvc_manager, llmisvc_manager, localmodel_manager, localmodel_node

MANAGERS: Final = {
    "isvc-manager": isvc_manager.main,
    "llmisvc-manager": llmisvc_manager.main,
    "localmodel-manager": localmodel_manager.main,
    "isvc-localmodel-node": localmodel_node.main,
}
PARSERS: Final[tuple[Callable[[], argparse.ArgumentParser], ...]] = (
    router_parser,
    agent_parser,
    modelserver_parser,
    llmserver_parser,
)


class Flag(NamedTuple):
    names: tuple[str, ...]
    default: str
    text: str


def programs() -> str:
    sections = [_section(name, command) for name, command in MANAGERS.items()]
    for parser in (make() for make in PARSERS):
        description = (parser.description or "").strip()
        sections.append(f"## {parser.prog}\n\n{description}\n\n{_table(argparse_flags(parser))}")
    return "\n".join(sections)


def commands() -> str:
    return "\n".join(_section(f"isvc {name}", command) for name, command in isvc_commands())


def isvc_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(isvc)
    for name in isvc.list_commands(context):
        command = isvc.get_command(context, name)
        assert command is not None
        yield name, command


def click_flags(command: click.Command) -> Iterator[Flag]:
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            names = (*parameter.opts, *parameter.secondary_opts)
            choices = (
                f" One of {', '.join(parameter.type.choices)}." if isinstance(parameter.type, click.Choice) else ""
            )
            yield Flag(names, _shown(parameter.to_info_dict()["default"]), (parameter.help or "") + choices)


def argparse_flags(parser: argparse.ArgumentParser) -> Iterator[Flag]:
    for action in parser._actions:
        if action.option_strings and action.help != argparse.SUPPRESS and action.dest != "help":
            yield Flag(tuple(action.option_strings), _shown(action.default), action.help or "")


def _section(title: str, command: click.Command) -> str:
    context = click.Context(command, info_name=title)
    usage = " ".join((title, *command.collect_usage_pieces(context)))
    text = inspect.cleandoc(command.help or "").replace("\b\n", "\n")
    flags = list(click_flags(command))
    return f"## {title}\n\n    {usage}\n\n{text}\n\n{_table(flags) if flags else ''}"


def _table(flags: Iterable[Flag]) -> str:
    rows = [(", ".join(map(code, flag.names)), code(flag.default), flag.text) for flag in flags]
    return table(("flag", "default", "does"), rows)


def _shown(default: object) -> str:
    """A default as one would type it; nothing for what is absent or off."""
    if default is None or default is False or default == argparse.SUPPRESS or callable(default):
        return ""
    if isinstance(default, bool):
        return "true"
    if isinstance(default, (list, tuple, dict)):
        return ",".join(map(str, default))
    return str(default)

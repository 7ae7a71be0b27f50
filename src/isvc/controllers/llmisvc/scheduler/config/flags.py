"""Flags of the endpoint picker that hold or replace parts of its configuration, found in and taken from arguments."""

from __future__ import annotations

from collections.abc import Container, Sequence
from itertools import pairwise

from isvc.kube.objects import Object

MAIN = "main"
_TEXT = frozenset(f"{dashes}{name}" for dashes in ("--", "-") for name in ("config-text", "configText"))
_FILE = frozenset(f"{dashes}{name}" for dashes in ("--", "-") for name in ("config-file", "configFile"))


def container(pod: Object, name: str = MAIN) -> Object | None:
    return next((each for each in pod.get("containers") or () if each.get("name") == name), None)


def config_flag(pod: Object) -> tuple[str, str] | None:
    """Returns the first flag of the main container that says where the configuration is, and what it says."""
    main = container(pod)
    arguments = (main or {}).get("args") or []
    pairs = pairwise(arguments)
    return next(((flag, value) for flag, value in pairs if flag in _TEXT or flag in _FILE), None)


def config_text(pod: Object) -> str | None:
    """Returns the configuration that stands in the arguments themselves."""
    found = config_flag(pod)
    return found[1] if found and found[0] in _TEXT else None


def text_positions(arguments: Sequence[str]) -> list[int]:
    """Returns where in the arguments configurations stand."""
    return [index + 1 for index, flag in enumerate(arguments[:-1]) if flag in _TEXT]


def names_any(arguments: Sequence[str], names: Container[str]) -> bool:
    return any(_split(each)[0] in names for each in arguments)


def take(arguments: Sequence[str], names: Container[str]) -> tuple[list[str], dict[str, str]]:
    """Returns arguments without the named flags, and the values that these had; "" where a flag had none."""
    rest: list[str] = []
    taken: dict[str, str] = {}
    waiting = iter(range(len(arguments)))
    for index in waiting:
        name, value = _split(arguments[index])
        if name not in names:
            rest.append(arguments[index])
            continue
        if not value and index + 1 < len(arguments) and not arguments[index + 1].startswith("-"):
            value = arguments[next(waiting)]
        taken[name] = value
    return rest, taken


def _split(argument: str) -> tuple[str, str]:
    name, _, value = argument.lstrip("-").partition("=")
    return name, value

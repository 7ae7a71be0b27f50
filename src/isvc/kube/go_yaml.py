"""YAML as Go reads it, and as safely: dates and `1:30` are text, `1e3` a number, keys text, nesting finite."""

from __future__ import annotations

import math
import re
from typing import Any, Final

import yaml

NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
"""Decimal numbers, also those with an exponent and no point, which are text to other parsers of YAML."""
MOST_LEVELS: Final = 1000  # libyaml's own recursion would end the process


class UnfitForUse(ValueError):
    """It may be YAML, but no text that people would write."""


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[str, Any]:
        """Makes keys text, whatever they look like."""
        self.flatten_mapping(node)
        return {str(key.value): self.construct_object(value, deep=deep) for key, value in node.value}


def load_all(text: str | bytes) -> list[Any]:
    """Returns the documents of a text that can be trusted not to be nested too deeply, but for empty ones."""
    return [document for document in yaml.load_all(text, Loader=Loader) if document]


def dump(*documents: Any, sort_keys: bool = False) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump_all(documents, Dumper=dumper, sort_keys=sort_keys, width=120, allow_unicode=True)
    return text


def check_shape(text: str | bytes, *, most_aliased: float = math.inf) -> None:
    """Raises UnfitForUse for what would take the process's stack, or memory; `yaml.YAMLError` for what is no YAML.

    `most_aliased` bounds the values that aliases stand for, where nobody else sees to that.
    """
    values = aliased = 0
    sizes: dict[str, int] = {}  # of what has an anchor, by its name
    opened: list[tuple[str | None, int]] = []  # the anchors of what is not complete, and how many values came before
    for event in yaml.parse(text, Loader=Loader):
        if isinstance(event, yaml.AliasEvent):
            values += (size := sizes.get(event.anchor or "", 1))
            aliased += size
            if aliased > most_aliased:
                raise UnfitForUse("document contains excessive aliasing")
        elif isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, values))
            values += 1
            if len(opened) > MOST_LEVELS:
                raise UnfitForUse(f"nested deeper than {MOST_LEVELS} levels")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = opened.pop()
            sizes |= {anchor: values - before} if anchor else {}
        else:
            values += 1


def _resolvers() -> dict[str, list[tuple[str, Any]]]:
    """Leaves out timestamps, and numbers to the base of 60."""
    kept: dict[str, list[tuple[str, Any]]] = {}
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items():
        for tag, pattern in resolvers:
            if not tag.endswith(":timestamp"):
                number = tag.endswith((":int", ":float"))
                kept.setdefault(letter, []).append((tag, _WithoutColon(pattern) if number else pattern))
    return kept


class _WithoutColon:
    """A pattern that matches nothing with a colon in it."""

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern

    def match(self, text: str) -> Any:
        return None if ":" in text else self._pattern.match(text)


Loader.yaml_implicit_resolvers = _resolvers()
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(rf"(?:{NUMBER.pattern})$"), list("-+.0123456789"))

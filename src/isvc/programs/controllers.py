"""What the folders of controllers hold: kinds as values, what they read, and the controllers of a manager.

A folder is imported when it is asked for, by the name that the table of kinds has for it.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from isvc.api.kinds import KINDS, KindRow
from isvc.controllers import revisions
from isvc.engine.kind import Kind
from isvc.kube.resource import Resource
from isvc.programs.program import MakeController
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Reader
from isvc.toolkit.cache.memory import MemoryReader
from isvc.toolkit.reads import Read


def make_kind(row: KindRow, reader: Reader, environment: Environment) -> Kind[Any, Any]:
    """Returns the kind as its controller's reconciler has it."""
    kind: Kind[Any, Any] = _module(row, "kind").make_kind(reader, environment)
    return kind


def reads_of(row: KindRow, environment: Environment) -> tuple[Read, ...]:
    """Returns what the kind's controller reads beyond what it watches, or not as it comes."""
    reads: tuple[Read, ...] = _module(row, "watches").reads(environment)
    return reads


def children_of(row: KindRow) -> frozenset[Resource]:
    """Returns the kinds of which an object of this kind may own some."""
    return make_kind(row, MemoryReader(), Environment()).children


def controllers_of(manager: str) -> tuple[MakeController, ...]:
    """Returns what makes the controllers of a manager: one for each of its kinds, and those that keep earlier specs."""
    rows = [row for row in KINDS if row.manager == manager]
    histories = [partial(revisions.controller, row.resource) for row in rows if row.keeps_history]
    return (*(_module(row, "watches").controller for row in rows), *histories)


def _module(row: KindRow, name: str) -> Any:
    return import_module(f"isvc.controllers.{row.controller}.{name}")

"""The record of a built-in kind: everything in which it differs from the plainest one.

A kind that needs more than its record has a strategy of its own (`builtin/strategies`). What is filled in where an
object is silent stands in `kube.builtin.defaults`, because the engine needs it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from isvc.apiserver.builtin.warnings import Warn
from isvc.apiserver.resources.description import Description, Scale
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.objects import Object

if TYPE_CHECKING:
    from isvc.apiserver.builtin.base import BuiltIn

Prepare: TypeAlias = Callable[[Object], None]
PrepareUpdate: TypeAlias = Callable[[Object, Object], None]
Check: TypeAlias = Callable[[Object], Iterable[FieldError]]
CheckUpdate: TypeAlias = Callable[[Object, Object], Iterable[FieldError]]

CREATE_ONLY = ("create",)
WORKLOAD_SCALE = Scale(label_selector="spec.selector")


@dataclass(frozen=True, kw_only=True)
class Kind(Description):
    #: Whether metadata.generation counts changes.
    generation: bool = False
    #: Whether a new object may come with a status.
    created_with_status: bool = False
    #: Whether a PUT to a missing name creates the object.
    created_by_update: bool = False
    #: Whether an update has to say which version it replaces.
    version_required: bool = False
    #: What becomes of dependents when a deletion does not say.
    propagation: str = ""
    #: What only the server says about a new object, or a changed one.
    on_create: Prepare | None = None
    on_update: PrepareUpdate | None = None
    #: What is refused: in every object, in a change, and in a status.
    check: Check | None = None
    check_update: CheckUpdate | None = None
    check_status: Check | None = None
    #: What is accepted and probably not meant, in a new object or a changed one.
    warn: Warn | None = None
    #: The object in another version, when it is served in two.
    convert: Callable[[Object, str], Object] | None = None
    #: The class of a kind that needs more than this record.
    strategy_class: type[BuiltIn] | None = None

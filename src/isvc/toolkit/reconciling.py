"""Which reconcile is under way: its fields are in every line that is logged meanwhile, its id in its trace."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from isvc.kube.objects import Key

if TYPE_CHECKING:
    from isvc.toolkit.client.transport import Answered


class Reconciling:
    """One reconcile of one object. With `answers`, a list, requests that it makes are noted there."""

    __slots__ = ("_id", "answers", "controller", "key")

    def __init__(self, controller: str, key: Key, answers: list[Answered] | None = None) -> None:
        self.controller, self.key, self.answers = controller, key, answers
        self._id = ""

    @property
    def id(self) -> str:
        """Made when it is first asked for: most reconciles log nothing."""
        self._id = self._id or str(uuid4())
        return self._id

    def fields(self) -> dict[str, str]:
        """Returns what it is called by in logs, under controller-runtime's names."""
        return {
            "controller": self.controller,
            "namespace": self.key.namespace,
            "name": self.key.name,
            "reconcileID": self.id,
        }


CURRENT: Final[ContextVar[Reconciling | None]] = ContextVar("reconciling", default=None)


def note_answer(answer: Answered) -> None:
    """Adds an answer of the API server to the reconcile that asked, if that is to be traced."""
    reconciling = CURRENT.get()
    if reconciling is not None and reconciling.answers is not None:
        reconciling.answers.append(answer)

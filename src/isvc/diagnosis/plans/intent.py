"""What planning a service comes to, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from isvc.diagnosis.finding import Finding
from isvc.engine.plan import Child, Plan, Want


@dataclass(frozen=True, slots=True)
class Intent:
    """`children` should exist; `problem` says why there are not more; `config` what is wrong with the configuration."""

    children: tuple[Child, ...] = ()
    problem: Finding | None = None
    suspicions: tuple[Finding, ...] = ()
    config: str = ""

    @classmethod
    def of(cls, plan: Plan, problem: Finding | None = None, suspicions: Iterable[Finding] = ()) -> Self:
        wanted = (child for part in plan.parts if isinstance(part.answer, Want) for child in part.answer.children)
        return cls(tuple(wanted), problem, tuple(suspicions))


def invalid(message: str) -> Intent:
    """The service cannot be read at all."""
    remedy = "correct that field; our webhooks refuse such a service where they are installed"
    return Intent(problem=Finding("InvalidSpec", message, remedy))

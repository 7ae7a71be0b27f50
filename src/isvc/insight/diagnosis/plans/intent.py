"""What planning a service comes to, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from isvc.engine.plan import Child, Plan, Want
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.insight.diagnosis.snapshot import Snapshot, Source
from isvc.kube.objects import Key
from isvc.kube.resource import CONFIG_MAPS
from isvc.serving.config import CONFIG_MAP


@dataclass(frozen=True, slots=True)
class Intent:
    """`children` should exist; `problem` says why there are not more; `config` what is wrong with the configuration.

    `sources` are what they were planned from, besides the service itself.
    """

    children: tuple[Child, ...] = ()
    problem: Finding | None = None
    suspicions: tuple[Finding, ...] = ()
    config: str = ""
    sources: tuple[Source, ...] = ()

    @classmethod
    def of(
        cls,
        plan: Plan,
        problem: Finding | None = None,
        suspicions: Iterable[Finding] = (),
        sources: Iterable[Source] = (),
    ) -> Self:
        wanted = (child for part in plan.parts if isinstance(part.answer, Want) for child in part.answer.children)
        return cls(tuple(wanted), problem, tuple(suspicions), sources=tuple(sources))


def configuration(snapshot: Snapshot) -> Source:
    return CONFIG_MAPS, Key(snapshot.system_namespace, CONFIG_MAP)


def unconfigured(snapshot: Snapshot, problem: str) -> Intent:
    """Nothing can be planned without a configuration, be it bad or not this user's to read."""
    if CONFIG_MAPS not in snapshot.unread:
        return Intent(config=problem)
    return unreadable(f"you may not read ConfigMap {CONFIG_MAP} in namespace {snapshot.system_namespace}")


def unreadable(why: str) -> Intent:
    """What should exist is not known, since this user may not read what it depends on."""
    message = f"what should exist for this service could not be planned: {why}"
    return Intent(suspicions=(Finding("NotAllowedToRead", message, "ask as somebody who may", Level.WARNS),))


def invalid(message: str) -> Intent:
    """The service cannot be read at all."""
    remedy = "correct that field; our webhooks refuse such a service where they are installed"
    return Intent(problem=Finding("InvalidSpec", message, remedy))

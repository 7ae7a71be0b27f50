"""What planning a service comes to: the engine's plan, and what the status has to know of how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from isvc.engine.plan import Child, Plan
from isvc.kube.objects import Object
from isvc.serving.runtimes import Runtime
from isvc.serving.workload.component import Component


class Stage(StrEnum):
    """The steps of a plan, in order; the parts of the plan are named after them."""

    MODE = "mode"
    SHARED = "shared"
    PREDICTOR = "predictor"
    CANARY = "canary"
    TRANSFORMER = "transformer"
    EXPLAINER = "explainer"
    INGRESS = "ingress"
    ALIAS = "ingress alias"
    CLEANUP = "cleanup"

    @classmethod
    def of(cls, part: str) -> Stage:
        """The stage of a part; a canary's part also has the canary's name."""
        return cls.CANARY if part.startswith(f"{cls.CANARY} ") else cls(part)


class ModelFailure(NamedTuple):
    """Why a model cannot be served, as the model status reports it."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Where planning or applying came to a halt, and what is reported about it.

    `reason` goes to the component's condition, `failure` to the model status; without either there is an event, and the
    condition's explanation. `remedy` says there what would mend it.
    """

    stage: Stage
    message: str
    reason: str = ""
    failure: ModelFailure | None = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Deployed:
    """A component and the children that run it. `stop` says why there are not all of them."""

    kind: str
    component: Component
    children: tuple[Child, ...]
    url: str
    stop: Stop | None = None


@dataclass(frozen=True, slots=True)
class Canary:
    name: str
    percent: int
    replicas: int
    deployed: Deployed
    ready: bool


@dataclass(frozen=True, slots=True)
class Planned:
    """`service` is the service as its runtime completed it; `stop` is None when all of it could be planned."""

    service: Object
    plan: Plan = field(default_factory=Plan)
    runtime: Runtime | None = None
    deployed: Mapping[str, Deployed] = field(default_factory=dict)
    canaries: tuple[Canary, ...] = ()
    stop: Stop | None = None

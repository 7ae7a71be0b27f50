"""What planning a service comes to: the engine's plan, and what the status has to know of how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from isvc.engine.plan import Child, Plan
from isvc.kube.objects import Object
from isvc.serving.runtimes import Runtime
from isvc.serving.workload.component import Component


@dataclass(frozen=True, slots=True)
class Stop:
    """Where planning or applying came to a halt, and what is said about it.

    `reason` goes to the component's condition, `failure` to the model status; without either only an event tells.
    """

    stage: str  # predictor, canary, transformer, explainer, ingress or shared
    message: str
    reason: str = ""
    failure: str = ""
    told: str = ""


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

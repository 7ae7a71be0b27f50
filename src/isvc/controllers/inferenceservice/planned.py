"""What planning a service comes to: the engine's plan, and what the status has to know of how it came about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from isvc.controllers.inferenceservice.status.edit import INGRESS_READY, PREDICTOR_READY, READY_OF
from isvc.engine.plan import Child, Plan, Stop
from isvc.kube.objects import Object
from isvc.kube.resource import SERVICES
from isvc.serving.runtimes import Runtime
from isvc.serving.workload.component import Component
from isvc.serving.workload.http_metric import HttpMetric

# Parts of a plan beside the components, after which theirs are called.
MODE: Final = "mode"
SHARED: Final = "shared"
CANARY: Final = "canary"
INTERCEPTOR: Final = "interceptor"
INGRESS: Final = "ingress"
ALIAS: Final = "ingress alias"
CLEANUP: Final = "cleanup"


class ModelFailure(NamedTuple):
    """Why a model cannot be served, as the model status reports it."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ServiceStop(Stop):
    """`failure` goes to the model status.

    Of a stop that `is_silent` KServe says nothing in the condition: there is an event, and the condition's explanation.
    """

    failure: ModelFailure | None = None
    is_silent: bool = False


def stop_at(part: str, message: str, reason: str = "ReconcileFailed") -> ServiceStop:
    """Returns a stop that the condition of its component reports."""
    return ServiceStop(part, _condition_of_part(part), reason, message)


def silent_stop(
    part: str, message: str, remedy: str = "", reason: str = "InvalidSpec", failure: ModelFailure | None = None
) -> ServiceStop:
    """Returns a stop that only the explanation of its condition reports."""
    return ServiceStop(part, _condition_of_part(part), reason, message, remedy, failure=failure, is_silent=True)


def _condition_of_part(part: str) -> str:
    return INGRESS_READY if part in (INTERCEPTOR, INGRESS, ALIAS) else READY_OF.get(part, PREDICTOR_READY)


@dataclass(frozen=True, slots=True)
class Deployed:
    """A component and the children that run it. `stop` says why there are not all of them.

    With a `metric` its requests go through KEDA's interceptor.
    """

    kind: str
    component: Component
    children: tuple[Child, ...]
    url: str
    stop: ServiceStop | None = None
    metric: HttpMetric | None = None

    @property
    def service(self) -> Object:
        """The Service that leads to the component's pods."""
        return next(child.manifest for child in self.children if child.resource == SERVICES)


@dataclass(frozen=True, slots=True)
class Canary:
    name: str
    percent: int
    replicas: int
    deployed: Deployed
    ready: bool
    runtime: Runtime | None = None


@dataclass(frozen=True, slots=True)
class Planned(Plan):
    """`service` is the service as its runtime completed it."""

    stop: ServiceStop | None = None
    service: Object = field(default_factory=dict)
    runtime: Runtime | None = None
    deployed: Mapping[str, Deployed] = field(default_factory=dict)
    canaries: tuple[Canary, ...] = ()

    @property
    def entrance(self) -> Deployed:
        """The component that requests go to first: the transformer where there is one."""
        return self.deployed.get("transformer") or self.deployed["predictor"]

"""A deployment mode is a value: it selects how components run and how the service is reached.

Adding a mode means writing one module in `workloads/` and one in `ingress/`, and naming them here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from isvc.api.modes import DeploymentMode
from isvc.controllers.inferenceservice.ingress import gateway, istio, kubernetes
from isvc.controllers.inferenceservice.observe import Observed
from isvc.controllers.inferenceservice.planned import Deployed, Planned
from isvc.controllers.inferenceservice.status.edit import StatusEdit
from isvc.controllers.inferenceservice.workloads import knative, standard
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Part
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.serving.thirdparty import KNATIVE_SERVICES
from isvc.serving.workload.component import Component

Live = Mapping[tuple[Resource, str], Object]


class Workload(Protocol):
    """How a component runs."""

    @property
    def KINDS(self) -> frozenset[Resource]:
        """Everything that this mode may create for components, and may prune."""
        ...

    def deploy(self, observed: Observed, kind: str, component: Component) -> Deployed: ...

    def report(self, edit: StatusEdit, deployed: Deployed, live: Live) -> None:
        """Write what the live children say about the component into the status."""
        ...

    def report_model(self, edit: StatusEdit, deployed: Deployed, pods: Sequence[Object], live: Live) -> None: ...


class Ingress(Protocol):
    """How a service is reached."""

    def plan(self, observed: Observed, planned: Planned, ready: StatusEdit) -> tuple[Part, ...]: ...

    def fold(self, edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> None: ...


class Rooms(NamedTuple):
    workload: Workload
    ingress: Ingress


def rooms(observed: Observed) -> Rooms | None:
    """The builders of the service's mode; None for a mode that cannot be served here."""
    if observed.mode == DeploymentMode.STANDARD:
        return Rooms(standard, gateway if observed.config.ingress.enable_gateway_api else kubernetes)
    return Rooms(knative, istio) if KNATIVE_SERVICES in observed.served else None

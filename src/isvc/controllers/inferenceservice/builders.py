"""The builders of a deployment mode: how its components run, and how a service is reached.

A mode is registered with one module of `workloads/` and the modules of `ingress/` that it may use. What the controller
watches, observes and prunes follows from that, so adding an ingress means writing its module and naming it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from isvc.api.modes import DeploymentMode
from isvc.controllers.inferenceservice.ingress import gateway, istio, kubernetes
from isvc.controllers.inferenceservice.observed import Live, Observed
from isvc.controllers.inferenceservice.planned import Deployed, Planned
from isvc.controllers.inferenceservice.status.edit import Readiness, StatusEdit
from isvc.controllers.inferenceservice.workloads import knative, standard
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Part
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.serving.config import IngressConfig
from isvc.serving.workload.component import Component


class Workload(Protocol):
    """How a component runs."""

    @property
    def KINDS(self) -> frozenset[Resource]:
        """Everything that this mode may create for components, and may prune."""
        ...

    @property
    def NEEDS(self) -> frozenset[Resource]:
        """Optional kinds without which nothing can be deployed."""
        ...

    def deploy(self, observed: Observed, kind: str, component: Component) -> Deployed: ...

    def report(self, edit: StatusEdit, deployed: Deployed, live: Live) -> None:
        """Writes what the live children say about the component into the status."""
        ...

    def report_model(self, edit: StatusEdit, deployed: Deployed, pods: Sequence[Object], live: Live) -> None: ...

    def summarize(self, edit: StatusEdit, observed: Observed, planned: Planned) -> None:
        """Writes what follows from the reports on all components."""
        ...


class Ingress(Protocol):
    """How a service is reached."""

    @property
    def KINDS(self) -> frozenset[Resource]:
        """What this ingress creates, and prunes when it is not wanted."""
        ...

    def is_chosen(self, settings: IngressConfig) -> bool: ...

    def plan(self, observed: Observed, planned: Planned, readiness: Readiness) -> tuple[Part, ...]: ...

    def fold(self, edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> None: ...


class Builders(NamedTuple):
    workload: Workload
    ingress: Ingress
    other_ingress_kinds: frozenset[Resource]  # of the ingresses that this mode could have used instead


_MODES: Final[Mapping[DeploymentMode, tuple[Workload, Sequence[Ingress]]]] = {
    DeploymentMode.STANDARD: (standard, (gateway, kubernetes)),
    DeploymentMode.KNATIVE: (knative, (istio,)),
    DeploymentMode.MODEL_MESH: (knative, (istio,)),
}
WORKLOAD_KINDS: Final = frozenset(kind for workload, _ in _MODES.values() for kind in workload.KINDS)
INGRESS_KINDS: Final = tuple(
    dict.fromkeys(kind for _, ingresses in _MODES.values() for ingress in ingresses for kind in ingress.KINDS)
)


def builders_of(observed: Observed) -> Builders | None:
    """Returns the builders of the service's mode, with the first ingress that the configuration chooses.

    None for a mode that cannot be served here.
    """
    workload, ingresses = _MODES[observed.mode]
    if not observed.served >= workload.NEEDS:
        return None
    chosen = next(ingress for ingress in ingresses if ingress.is_chosen(observed.config.ingress))
    every = frozenset[Resource]().union(*(ingress.KINDS for ingress in ingresses))
    return Builders(workload, chosen, every - chosen.KINDS)

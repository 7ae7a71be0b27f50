"""The builders of a deployment mode: how its components run, and how a service is reached.

A mode has one module of `workloads/`, and may use the modules of `ingress/` that the table of projects names for it.
What the controller watches, observes and prunes follows from that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, Protocol

from isvc.api.modes import DeploymentMode
from isvc.controllers.inferenceservice import ingress as ingresses
from isvc.controllers.inferenceservice.ingress import kubernetes
from isvc.controllers.inferenceservice.observed import Live, Observed
from isvc.controllers.inferenceservice.planned import Deployed, Planned
from isvc.controllers.inferenceservice.status.edit import Readiness, StatusEdit
from isvc.controllers.inferenceservice.workloads import knative, standard
from isvc.engine.outcome import Outcome
from isvc.engine.plan import Part
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.serving.config.sections import IngressConfig
from isvc.serving.thirdparty import PROJECTS
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

    def report(self, edit: StatusEdit, observed: Observed, deployed: Deployed, live: Live) -> None:
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

    def unchanged_hosts(self, observed: Observed, planned: Planned) -> Mapping[str, Sequence[str]]:
        """Returns the public hosts with which requests arrive at components, by the component's name."""
        ...

    def plan(self, observed: Observed, planned: Planned, readiness: Readiness) -> tuple[Part, ...]: ...

    def fold(self, edit: StatusEdit, observed: Observed, planned: Planned, outcome: Outcome) -> None: ...


class Builders(NamedTuple):
    workload: Workload
    ingress: Ingress
    other_ingress_kinds: frozenset[Resource]  # of the ingresses that this mode could have used instead


def _ingresses(mode: DeploymentMode) -> Iterator[Ingress]:
    """The ingresses of a mode; Kubernetes' own is for where no project's is configured."""
    for project in PROJECTS:
        if mode in project.routed:
            module: Any = import_module(f"{ingresses.__name__}.{project.ingress}")
            yield module
    if mode is DeploymentMode.STANDARD:
        yield kubernetes


_WORKLOADS: Final[Mapping[DeploymentMode, Workload]] = {
    DeploymentMode.STANDARD: standard,
    DeploymentMode.KNATIVE: knative,
    DeploymentMode.MODEL_MESH: knative,
}
_INGRESSES: Final = {mode: tuple(_ingresses(mode)) for mode in _WORKLOADS}
INGRESS_KINDS: Final = tuple(
    dict.fromkeys(kind for each in _INGRESSES.values() for ingress in each for kind in ingress.KINDS)
)
CHILDREN: Final = frozenset(INGRESS_KINDS).union(*(workload.KINDS for workload in _WORKLOADS.values()))
"""Every kind of which a service may own objects."""


def builders_of(observed: Observed) -> Builders | None:
    """Returns the builders of the service's mode, with the first ingress that the configuration chooses.

    None for a mode that cannot be served here.
    """
    workload, available = _WORKLOADS[observed.mode], _INGRESSES[observed.mode]
    if not observed.served >= workload.NEEDS:
        return None
    chosen = next(ingress for ingress in available if ingress.is_chosen(observed.config.ingress))
    every = frozenset[Resource]().union(*(ingress.KINDS for ingress in available))
    return Builders(workload, chosen, every - chosen.KINDS)

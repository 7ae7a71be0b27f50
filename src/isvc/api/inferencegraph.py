"""InferenceGraph: a request's way through several models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Final

import msgspec

from isvc.api.fields import Definition, Int32, Int64, Required, Schema, Spec, zero
from isvc.api.meta import Kind, Status
from isvc.kube.objects import Object

ROOT = "root"
"""Name of the node that every request starts at."""
STEP_POLICIES: Final = "isvc.dev/step-policies"
"""Annotation for how patient the router is with single steps, `{"root/classify": {"timeoutSeconds": 2, "retries": 3}}`.

A step is called by its node and its name, or its number where it has none. It is no field of the spec, because KServe's
CRD would prune it.
"""


class RouterType(StrEnum):
    SEQUENCE = "Sequence"
    SPLITTER = "Splitter"
    ENSEMBLE = "Ensemble"
    SWITCH = "Switch"


class InferenceStep(Spec):
    """One destination of a node: another node, a service by name, or a URL."""

    name: str = ""
    """Name of the step, unique in its node."""
    node_name: str = ""
    """Node that takes the request next."""
    service_name: str = ""
    """InferenceService that takes the request next."""
    service_url: str = ""
    """URL that takes the request next."""
    data: str = ""
    """What to send: $request, or $response of the step before."""
    map_predictions_to_instances: bool = False
    """Whether predictions of the step before become this step's instances."""
    weight: Int64 | None = None
    """Share of requests in percent, for Splitter nodes. The weights of a node add up to 100."""
    condition: str = ""
    """When to take this step: a query on the data, for Switch nodes and sequences."""
    dependency: Annotated[str, Schema(enum=["Soft", "Hard"])] = ""
    """Hard: when this step fails, the whole node fails."""


class InferenceRouter(Spec):
    """A node: what to do with a request."""

    router_type: Required[Annotated[str, Schema(enum=[each.value for each in RouterType])]] = zero(str)
    """Sequence: one step after another. Splitter: one of them by weight. Ensemble: all of them.
    Switch: the first whose condition holds."""
    steps: list[InferenceStep] = []
    """Where requests go."""


class RouterTimeouts(Spec):
    """The router's patience, in seconds."""

    server_read: Int64 | None = None
    """For reading a request."""
    server_write: Int64 | None = None
    """For writing a response."""
    server_idle: Int64 | None = None
    """For the next request on an open connection."""
    service_client: Int64 | None = None
    """For an answer of a model."""


class InferenceGraphSpec(Spec):
    """Nodes, and how the router that knows them runs."""

    nodes: Required[dict[str, InferenceRouter]] = zero(dict)
    """Nodes by name. Requests start at the one called root."""
    resources: Annotated[Object, Definition("io.k8s.api.core.v1.ResourceRequirements")] = {}
    """CPU and memory of the router."""
    affinity: Annotated[Object, Definition("io.k8s.api.core.v1.Affinity")] | None = None
    """Where the router's pods may run."""
    timeout: Int64 | None = None
    """After how many seconds a request fails."""
    router_timeouts: RouterTimeouts | None = None
    """The router's patience."""
    min_replicas: Int32 | None = None
    """Fewest pods; 0 allows scaling to zero where the autoscaler can."""
    max_replicas: Int32 = 0
    """Most pods."""
    scale_target: Int32 | None = None
    """What the scale metric should be per pod."""
    scale_metric: Annotated[str, Schema(enum=["cpu", "memory", "concurrency", "rps"])] | None = None
    """What to scale by."""
    tolerations: list[Annotated[Object, Definition("io.k8s.api.core.v1.Toleration")]] = []
    """Taints that the router's pods tolerate."""
    node_selector: dict[str, str] = {}
    """Labels of nodes that the router's pods may run on."""
    node_name: str = ""
    """The node that the router's pods run on."""
    service_account_name: str = ""
    """The router's service account."""


class InferenceGraphStatus(Status):
    """What is there."""

    url: str | None = None
    """Where the graph answers."""
    deployment_mode: str = ""
    """How the router is deployed."""


class InferenceGraph(Kind):
    """A request's way through several models."""

    spec: InferenceGraphSpec = InferenceGraphSpec()
    """What is wanted."""
    status: InferenceGraphStatus = InferenceGraphStatus()
    """What is there."""


class StepPolicy(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """For each try."""
    retries: Annotated[int, msgspec.Meta(ge=0, le=10)] = 0
    """After a try without an answer, or with the status 502, 503 or 504."""


class InvalidPolicies(ValueError):
    """The annotation cannot be followed; the message says why."""


def read_policies(annotations: Mapping[str, str], spec: InferenceGraphSpec) -> dict[str, StepPolicy]:
    """Returns the policies by step; raises InvalidPolicies."""
    text = annotations.get(STEP_POLICIES)
    if text is None:
        return {}
    try:
        policies = msgspec.json.decode(text, type=dict[str, StepPolicy])
    except msgspec.DecodeError as error:
        raise InvalidPolicies(f"is no JSON of policies by step: {error}") from None
    known = {step_key(name, index, step): step for name, index, step in all_steps(spec)}
    for key in policies:
        if key not in known:
            raise InvalidPolicies(f"{key} is no step; there are {', '.join(known) or 'none'}")
        if known[key].node_name:
            raise InvalidPolicies(f"{key} leads to a node, and only calls of services have policies")
    return policies


def all_steps(spec: InferenceGraphSpec) -> Iterator[tuple[str, int, InferenceStep]]:
    """Yields the node, the number there, and the step."""
    for name, node in spec.nodes.items():
        for index, step in enumerate(node.steps):
            yield name, index, step


def step_key(node: str, index: int, step: InferenceStep) -> str:
    return f"{node}/{step.name or index}"

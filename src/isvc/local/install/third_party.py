"""Kinds of other projects that services are made of: routes, gateways, inference pools, groups of pods.

A `spec` that LLMInferenceServices embed is checked by its project's schema. Of others the types are checked of what
controllers here read; the rest is taken as it comes. A cluster gets these kinds from the projects themselves, or
those of the inference extension from our chart, for who asks for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from isvc.api.kinds.crds import definition
from isvc.api.schema import structural
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.kube.schemas import Schema
from isvc.local.knative.kinds import CONFIGURATIONS, REVISIONS, ROUTES
from isvc.serving.thirdparty import (
    GATEWAY_CLASSES,
    GATEWAYS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INFERENCE_POOLS_V1ALPHA2,
    INTERCEPTOR_ROUTES,
    KNATIVE_SERVICES,
    LEADER_WORKER_SETS,
    REFERENCE_GRANTS,
    SCALED_OBJECTS,
    VIRTUAL_SERVICES,
)

_OPEN: Final[Schema] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_AGE: Final = ("Age", "date", ".metadata.creationTimestamp")

Column = tuple[str, str, str]  # name, type, JSON path


@dataclass(frozen=True, slots=True)
class _Kind:
    resource: Resource
    short_names: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    spec: str = ""  # the name of its schema
    checked: Schema | None = None  # what is checked of a spec whose schema is not here
    other_versions: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


def _condition(name: str, field: str = "status") -> str:
    return f".status.conditions[?(@.type=='{name}')].{field}"


_READY: Final = (
    ("Ready", "string", _condition("Ready")),
    ("Reason", "string", _condition("Ready", "reason")),
)
_REVISIONS: Final = (
    ("LatestCreated", "string", ".status.latestCreatedRevisionName"),
    ("LatestReady", "string", ".status.latestReadyRevisionName"),
)
_KNATIVE: Final = ("all", "knative", "serving")


def _object(required: Sequence[str] = (), **properties: Schema) -> Schema:
    return {**_OPEN, "properties": properties, **({"required": list(required)} if required else {})}


_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_TEXT: Final[Schema] = {"type": "string"}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_REVISION: Final = _object(
    ["containers"],
    containers={"type": "array", "minItems": 1, "items": _OPEN},
    containerConcurrency=_COUNT,
    timeoutSeconds=_COUNT,
)
_TARGET: Final = _object(
    percent={"type": "integer", "minimum": 0, "maximum": 100},
    configurationName=_TEXT,
    revisionName=_TEXT,
    tag=_TEXT,
)
_TRAFFIC: Final = _object(traffic={"type": "array", "items": _TARGET})
_TEMPLATE: Final = _object(
    ["template"], template=_object(["spec"], spec=_REVISION), traffic=_TRAFFIC["properties"]["traffic"]
)
_SCALED: Final = _object(
    ["scaleTargetRef", "triggers"],
    scaleTargetRef=_object(["name"], name=_TEXT, kind=_TEXT),
    triggers={"type": "array", "items": _object(["type", "metadata"], type=_TEXT, metadata=_TEXTS)},
    idleReplicaCount=_COUNT,
    maxReplicaCount=_COUNT,
    minReplicaCount=_COUNT,
    pollingInterval=_COUNT,
    cooldownPeriod=_COUNT,
)
_INTERCEPTED: Final = _object(
    ["target", "scalingMetric"],
    target=_object(["service"], service=_TEXT, port=_COUNT),
    rules={"type": "array", "items": _object(hosts={"type": "array", "items": _TEXT})},
    scalingMetric=_object(concurrency=_object(targetValue=_COUNT), requestRate=_object(targetValue=_COUNT)),
)
_REFERENCES: Final[Schema] = {"type": "array", "minItems": 1, "items": _object(["group", "kind"])}
_GRANT: Final = _object(["from", "to"], **{"from": _REFERENCES, "to": _REFERENCES})
_POD: Final = _object(["spec"], spec=_object(["containers"]))
_GROUPS: Final = _object(
    ["leaderWorkerTemplate"],
    replicas=_COUNT,
    startupPolicy=_TEXT,
    rolloutStrategy=_object(
        [],
        rollingUpdateConfiguration=_object([], partition=_COUNT, maxUnavailable={"x-kubernetes-int-or-string": True}),
    ),
    leaderWorkerTemplate=_object(
        ["workerTemplate"],
        size=_COUNT,
        restartPolicy=_TEXT,
        leaderTemplate=_POD,
        workerTemplate=_POD,
        subGroupPolicy=_object([], subGroupSize={**_COUNT, "minimum": 1}),
    ),
)

_POOL_REFERENCE: Final = _object(
    ["name"],
    group={**_TEXT, "default": INFERENCE_POOLS.group},
    kind={**_TEXT, "default": INFERENCE_POOLS.kind},
    name=_TEXT,
)
_OBJECTIVES: Final = Resource("llm-d.ai", "v1alpha2", "inferenceobjectives", "InferenceObjective")
_REWRITES: Final = Resource("llm-d.ai", "v1alpha2", "inferencemodelrewrites", "InferenceModelRewrite")
_POOL_COLUMN: Final = ("Inference Pool", "string", ".spec.poolRef.name")

_POOLS: Final = (
    _Kind(
        INFERENCE_POOLS,
        short_names=("infpool",),
        columns=(_AGE,),
        spec="inference.networking.k8s.io/InferencePoolSpec",
    ),
    _Kind(
        INFERENCE_POOLS_V1ALPHA2,
        short_names=("xinfpool",),
        columns=(_AGE,),
        spec="inference.networking.x-k8s.io/InferencePoolSpec",
    ),
)
_OF_SCHEDULERS: Final = (
    _Kind(
        _OBJECTIVES,
        columns=(_POOL_COLUMN, ("Priority", "string", ".spec.priority"), _AGE),
        checked=_object(["poolRef"], poolRef=_POOL_REFERENCE, priority={"type": "integer"}),
    ),
    _Kind(
        _REWRITES,
        columns=(_POOL_COLUMN, _AGE),
        checked=_object(["poolRef", "rules"], poolRef=_POOL_REFERENCE, rules={"type": "array", "items": _OPEN}),
    ),
)
"""What the schedulers of llm-d watch beside pools, and do not start without."""
_KINDS: Final = (
    *_POOLS,
    _Kind(
        HTTP_ROUTES,
        columns=(("Hostnames", "string", ".spec.hostnames"), _AGE),
        spec="gateway.networking.k8s.io/HTTPRouteSpec",
        other_versions=("v1beta1",),
    ),
    _Kind(
        GATEWAYS,
        short_names=("gtw",),
        columns=(
            ("Class", "string", ".spec.gatewayClassName"),
            ("Address", "string", ".status.addresses[*].value"),
            ("Programmed", "string", _condition("Programmed")),
            _AGE,
        ),
        other_versions=("v1beta1",),
    ),
    _Kind(
        GATEWAY_CLASSES,
        short_names=("gc",),
        columns=(
            ("Controller", "string", ".spec.controllerName"),
            ("Accepted", "string", _condition("Accepted")),
            _AGE,
        ),
        other_versions=("v1beta1",),
    ),
    _Kind(REFERENCE_GRANTS, short_names=("refgrant",), columns=(_AGE,), checked=_GRANT, other_versions=("v1",)),
    _Kind(
        SCALED_OBJECTS,
        short_names=("so",),
        columns=(
            ("ScaleTargetKind", "string", ".status.scaleTargetKind"),
            ("ScaleTargetName", "string", ".spec.scaleTargetRef.name"),
            ("Min", "integer", ".spec.minReplicaCount"),
            ("Max", "integer", ".spec.maxReplicaCount"),
            *((kind, "string", _condition(kind)) for kind in ("Ready", "Active", "Paused")),
            _AGE,
        ),
        checked=_SCALED,
    ),
    _Kind(
        INTERCEPTOR_ROUTES,
        columns=(("TargetService", "string", ".spec.target.service"), _AGE),
        checked=_INTERCEPTED,
    ),
    _Kind(
        KNATIVE_SERVICES,
        short_names=("kservice", "ksvc"),
        columns=(("URL", "string", ".status.url"), *_REVISIONS, *_READY),
        categories=_KNATIVE,
        checked=_TEMPLATE,
    ),
    _Kind(
        CONFIGURATIONS,
        short_names=("config", "cfg"),
        columns=(*_REVISIONS, *_READY),
        categories=_KNATIVE,
        checked=_TEMPLATE,
    ),
    _Kind(
        REVISIONS,
        short_names=("rev",),
        columns=(
            ("Config Name", "string", r".metadata.labels['serving\.knative\.dev/configuration']"),
            ("Generation", "string", r".metadata.labels['serving\.knative\.dev/configurationGeneration']"),
            *_READY,
            ("Actual Replicas", "integer", ".status.actualReplicas"),
            ("Desired Replicas", "integer", ".status.desiredReplicas"),
        ),
        categories=_KNATIVE,
        checked=_REVISION,
    ),
    _Kind(
        ROUTES,
        short_names=("rt",),
        columns=(("URL", "string", ".status.url"), *_READY),
        categories=_KNATIVE,
        checked=_TRAFFIC,
    ),
    _Kind(
        VIRTUAL_SERVICES,
        short_names=("vs",),
        columns=(("Gateways", "string", ".spec.gateways"), ("Hosts", "string", ".spec.hosts"), _AGE),
        other_versions=("v1", "v1alpha3"),
    ),
    _Kind(
        LEADER_WORKER_SETS,
        short_names=("lws",),
        columns=(
            ("Ready", "string", ".status.readyReplicas"),
            ("Desired", "integer", ".spec.replicas"),
            ("Up-to-date", "integer", ".status.updatedReplicas"),
            _AGE,
        ),
        checked=_GROUPS,
    ),
)


def third_party_crds() -> Iterator[Object]:
    return map(_crd, _KINDS)


def inference_extension_crds() -> Iterator[Object]:
    """Yields the kinds of the Gateway API's inference extension and of llm-d that schedulers of services need."""
    return map(_crd, (*_POOLS, *_OF_SCHEDULERS))


def _crd(kind: _Kind) -> Object:
    known = (kind.resource.version, *kind.other_versions)
    versions = [_version(kind, version, stored=version == kind.resource.version) for version in known]
    names = {"shortNames": list(kind.short_names), "categories": list(kind.categories)}
    crd = definition(kind.resource, versions, names)
    # Kubernetes asks for this annotation on every kind of a group below k8s.io.
    approved = {"api-approved.kubernetes.io": "unapproved, of isvc, with the project's schema of its spec"}
    return {**crd, "metadata": {**crd["metadata"], "annotations": approved}}


def _version(kind: _Kind, name: str, *, stored: bool) -> Object:
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
        "spec": structural(kind.spec) if kind.spec else {**_OPEN, **(kind.checked or {})},
        "status": _OPEN,
    }
    return {
        "name": name,
        "served": True,
        "storage": stored,
        "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": properties}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": _columns(kind.columns),
    }


def _columns(columns: Sequence[Column]) -> list[Object]:
    return [{"name": name, "type": kind, "jsonPath": path} for name, kind, path in columns]

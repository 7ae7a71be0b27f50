"""How an LLMInferenceService is reached: routes, gateways, and the scheduler that picks a pod for each request."""

from __future__ import annotations

from typing import Annotated

from isvc.api.fields import Definition, Int32, LocalObjectReference, OpenObject, PodSpec, Schema, Spec
from isvc.api.llm.names import GatewayObjectReference, UntypedObjectReference
from isvc.api.llm.workload import OpenPodSpec
from isvc.kube.objects import Object


class HTTPRouteSpec(Spec):
    """An HTTPRoute to make, or some that exist: one of them."""

    refs: list[LocalObjectReference] = []
    """HTTPRoutes that exist."""
    spec: Annotated[Object, Definition("gateway.networking.k8s.io/HTTPRouteSpec")] | None = None
    """The HTTPRoute to make."""


class GatewayRoutesSpec(Spec):
    """Routes of the Gateway API. An empty object asks for a route like any other."""

    http: HTTPRouteSpec | None = None
    """The HTTPRoute."""
    group: Annotated[str, Schema(minLength=1, maxLength=63, pattern="^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")] | None = None
    """Services of the same group share traffic by weight."""
    weight: Annotated[Int32, Schema(minimum=0, maximum=1000000)] | None = None
    """This service's share in its group."""


class GatewaySpec(Spec):
    """Gateways. An empty object asks for the default one."""

    refs: list[GatewayObjectReference] = []
    """Gateways that exist."""


class IngressSpec(Spec):
    """An Ingress instead of routes and gateways."""

    refs: list[UntypedObjectReference] = []
    """Ingresses that exist."""


class SchedulerConfigSpec(Spec):
    """The scheduler's configuration: one of these."""

    inline: OpenObject = None
    """The configuration itself."""
    ref: Annotated[Object, Definition("io.k8s.api.core.v1.ConfigMapKeySelector")] | None = None
    """A ConfigMap's key that holds it."""


class TokenizerSpec(Spec):
    """The tokenizer that schedulers may need."""

    template: PodSpec | None = None
    """Changes to its pod."""


class CommonSchedulerSpec(Spec):
    """What both versions say about the scheduler."""

    labels: dict[str, str] = {}
    """Labels for the scheduler's pod."""
    annotations: dict[str, str] = {}
    """Annotations for the scheduler's pod."""
    template: OpenPodSpec | None = None
    """The scheduler's pod. Presets supply what is left out."""
    config: SchedulerConfigSpec | None = None
    """The scheduler's configuration."""
    replicas: Int32 | None = None
    """How many schedulers."""
    tokenizer: TokenizerSpec | None = None
    """Changes to the tokenizer."""


class CommonRouterSpec(Spec):
    """What both versions say about the way in."""

    route: GatewayRoutesSpec | None = None
    """Routes of the Gateway API."""
    gateway: GatewaySpec | None = None
    """Gateways that the routes hang on."""
    ingress: IngressSpec | None = None
    """An Ingress instead."""

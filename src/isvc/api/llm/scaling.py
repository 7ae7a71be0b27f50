"""How the workloads of an LLMInferenceService scale: through a variant autoscaler, or through KEDA alone."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from isvc.api.fields import ATOMIC, Definition, Int32, Required, Schema, Spec, rules, zero
from isvc.kube.objects import Object

_Behavior = Annotated[Object, Definition("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior")]
_NAMED_HPA = (
    "!has(self.advanced) || !has(self.advanced.horizontalPodAutoscalerConfig)"
    " || size(self.advanced.horizontalPodAutoscalerConfig.name) == 0",
    "horizontalPodAutoscalerConfig.name must not be set; the controller manages the HPA name",
)
_MODIFIERS = "self.keda.advanced.scalingModifiers"
_IDLE = (
    "idleReplicaCount must be less than minReplicas;"
    " idleReplicaCount defines the replica floor when no triggers are active"
)
_IDLE_NEEDS = "minReplicas is required when idleReplicaCount is set"


class ScalingModifiers(Spec):
    """KEDA: one metric computed from several."""

    formula: str = ""
    """How it is computed."""
    target: str = ""
    """What it should be."""
    activation_target: str = ""
    """From what value on scaling begins."""
    metric_type: Annotated[str, Schema(enum=["AverageValue", "Value"])] = ""
    """How the target is meant."""


class HorizontalPodAutoscalerConfig(Spec):
    """KEDA: the autoscaler it makes."""

    behavior: _Behavior | None = None
    """How fast to scale up and down."""
    name: str = ""
    """Must be left out: the controller names it."""


class AdvancedConfig(Spec):
    """KEDA: rarely needed settings."""

    horizontal_pod_autoscaler_config: HorizontalPodAutoscalerConfig | None = None
    """The autoscaler that KEDA makes."""
    restore_to_original_replica_count: bool = False
    """Whether deleting the ScaledObject brings back the replicas from before."""
    scaling_modifiers: ScalingModifiers = ScalingModifiers()
    """One metric computed from several."""


class Fallback(Spec):
    """KEDA: what to do when metrics are missing."""

    failure_threshold: Required[Int32] = zero(int)
    """After how many failures."""
    replicas: Required[Int32] = zero(int)
    """How many replicas to keep then."""
    behavior: Annotated[
        str,
        Schema(
            default="static", enum=["static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower"]
        ),
    ] = ""
    """What the number means."""


class KEDAScalingSpec(Spec):
    """Settings of a KEDA ScaledObject."""

    __schema__: ClassVar[dict[str, Any]] = rules(_NAMED_HPA).attributes

    polling_interval: Annotated[Int32, Schema(minimum=1)] | None = None
    """Every how many seconds triggers are checked."""
    cooldown_period: Annotated[Int32, Schema(minimum=0)] | None = None
    """For how many seconds no trigger may be active before scaling down."""
    initial_cooldown_period: Annotated[Int32, Schema(minimum=0)] | None = None
    """For how many seconds after creation triggers are not looked at."""
    idle_replica_count: Annotated[Int32, Schema(minimum=0)] | None = None
    """Replicas while no trigger is active; fewer than minReplicas."""
    fallback: Fallback | None = None
    """What to do when metrics are missing."""
    advanced: AdvancedConfig | None = None
    """Rarely needed settings."""


class AuthenticationRef(Spec):
    """KEDA: where credentials are."""

    name: Required[str] = zero(str)
    """Name of the object."""
    kind: str = ""
    """TriggerAuthentication or ClusterTriggerAuthentication."""


class ScaleTrigger(Spec):
    """KEDA: a reason to scale."""

    type: Required[str] = zero(str)
    """Which scaler, for example prometheus."""
    name: str = ""
    """Name of the trigger."""
    use_cached_metrics: bool = False
    """Whether values between polls are reused."""
    metadata: Required[dict[str, str]] = zero(dict)
    """Settings of the scaler."""
    authentication_ref: AuthenticationRef | None = None
    """Where credentials are."""
    metric_type: str = ""
    """How the target is meant."""


class DirectKEDAScalingSpec(KEDAScalingSpec):
    """KEDA with triggers of one's own."""

    triggers: Required[Annotated[list[ScaleTrigger], ATOMIC, Schema(minItems=1)]] = zero(list)
    """Reasons to scale."""


class HPAScalingSpec(Spec):
    """A HorizontalPodAutoscaler that follows the variant autoscaler's metric."""

    behavior: _Behavior | None = None
    """How fast to scale up and down."""


class WVASpec(Spec):
    """The variant autoscaler decides, a HorizontalPodAutoscaler or KEDA follows."""

    __schema__: ClassVar[dict[str, Any]] = rules(
        (
            f"!has(self.keda) || !has(self.keda.advanced) || (size({_MODIFIERS}.formula) == 0"
            f" && size({_MODIFIERS}.target) == 0 && size({_MODIFIERS}.activationTarget) == 0"
            f" && size({_MODIFIERS}.metricType) == 0)",
            "scalingModifiers must not be set; WVA controls the scaling metric formula and logic",
        ),
        ("!(has(self.hpa) && has(self.keda))", "hpa and keda are mutually exclusive; choose one actuator backend"),
        ("has(self.hpa) || has(self.keda)", "either hpa or keda must be specified as the actuator backend"),
    ).attributes

    variant_cost: Annotated[str, Schema(default="10.0", pattern=r"^\d+(\.\d+)?$")] = ""
    """What a replica costs, compared with other variants."""
    hpa: HPAScalingSpec | None = None
    """Follow with a HorizontalPodAutoscaler."""
    keda: KEDAScalingSpec | None = None
    """Follow with KEDA."""


def _idle_rules(field: str, guard: str) -> list[tuple[str, str]]:
    absent = f"{guard} || !has({field}.idleReplicaCount)"
    return [
        (f"{absent} || has(self.minReplicas)", _IDLE_NEEDS),
        (f"{absent} || !has(self.minReplicas) || {field}.idleReplicaCount < self.minReplicas", _IDLE),
    ]


class ScalingSpec(Spec):
    """Between how many replicas to scale, and by what."""

    __schema__: ClassVar[dict[str, Any]] = rules(
        ("has(self.wva) || has(self.keda)", "either wva or keda must be specified when scaling is configured"),
        ("!(has(self.wva) && has(self.keda))", "wva and keda are mutually exclusive"),
        (
            "!has(self.keda) || size(self.keda.triggers) > 0",
            "at least one trigger is required when using direct KEDA scaling",
        ),
        ("!has(self.minReplicas) || self.minReplicas <= self.maxReplicas", "minReplicas cannot exceed maxReplicas"),
        *_idle_rules("self.wva.keda", "!has(self.wva) || !has(self.wva.keda)"),
        *_idle_rules("self.keda", "!has(self.keda)"),
    ).attributes

    min_replicas: Annotated[Int32, Schema(default=1, minimum=1)] | None = None
    """Fewest replicas while there is work."""
    max_replicas: Required[Annotated[Int32, Schema(minimum=1)]] = zero(int)
    """Most replicas."""
    wva: WVASpec | None = None
    """Scale by what the variant autoscaler says."""
    keda: DirectKEDAScalingSpec | None = None
    """Scale by triggers of one's own."""

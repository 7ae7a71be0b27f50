"""Validates a workload of an LLMInferenceService."""

from __future__ import annotations

import re
from collections.abc import Iterator

from isvc.api.llm.scaling import KEDAScalingSpec, ScalingSpec, WVASpec
from isvc.api.llm.workload import FileSystemTierSpec, KVCacheOffloadingSpec, RolloutStrategy, WorkloadSpec
from isvc.api.validation import Problem
from isvc.kube.quantity import Quantity, QuantityError

_COST = re.compile(r"\d+(\.\d+)?", re.ASCII)
_PERCENT = re.compile(r"[0-9]+%", re.ASCII)


def workload_problems(workload: WorkloadSpec, path: str) -> Iterator[Problem]:
    yield from _parallelism(workload, path)
    if workload.scaling is not None:
        if workload.replicas is not None:
            yield Problem(f"{path}.scaling", "scaling and replicas are mutually exclusive; remove one of them")
        yield from _scaling(workload.scaling, f"{path}.scaling")
    if workload.rollout_strategy is not None:
        yield from _rollout(workload.rollout_strategy, workload.worker is not None, f"{path}.rolloutStrategy")
    if workload.kv_cache_offloading is not None:
        yield from _offloading(workload.kv_cache_offloading, f"{path}.kvCacheOffloading")


def _parallelism(workload: WorkloadSpec, path: str) -> Iterator[Problem]:
    sizes = workload.parallelism
    if workload.worker is not None and (sizes is None or not (sizes.is_data or sizes.is_pipeline)):
        yield Problem(
            f"{path}.worker",
            "when worker is specified, parallelism must be configured for data parallelism or pipeline parallelism",
        )
    if sizes is None:
        return
    path = f"{path}.parallelism"
    if sizes.is_pipeline and sizes.is_data:
        yield Problem(path, "cannot set both pipeline parallelism and data parallelism (data or dataLocal)")
    if sizes.data is not None and sizes.data_local is None:
        yield Problem(f"{path}.dataLocal", "dataLocal must be set when data is set")
    if sizes.data_local is not None and sizes.data is None:
        yield Problem(f"{path}.data", "data must be set when dataLocal is set")
    for field, size in (("pipeline", sizes.pipeline), ("data", sizes.data), ("dataLocal", sizes.data_local)):
        if size is not None and size <= 0:
            yield Problem(f"{path}.{field}", f"{field} parallelism must be greater than 0, got {size}")


def _scaling(scaling: ScalingSpec, path: str) -> Iterator[Problem]:
    if scaling.min_replicas is not None and scaling.min_replicas > scaling.max_replicas:
        yield Problem(
            f"{path}.minReplicas",
            f"minReplicas ({scaling.min_replicas}) cannot exceed maxReplicas ({scaling.max_replicas})",
        )
    if scaling.wva is not None and scaling.keda is not None:
        yield Problem(path, "wva and keda are mutually exclusive; choose one scaling mechanism")
    elif scaling.keda is not None:
        if not scaling.keda.triggers:
            yield Problem(f"{path}.keda.triggers", "at least one trigger is required")
        yield from _keda(scaling.keda, scaling, f"{path}.keda")
    elif scaling.wva is not None:
        yield from _wva(scaling.wva, scaling, path)
    else:
        yield Problem(path, "either wva or keda must be specified")


def _wva(wva: WVASpec, scaling: ScalingSpec, path: str) -> Iterator[Problem]:
    if wva.hpa is not None and wva.keda is not None:
        yield Problem(f"{path}.wva", "hpa and keda are mutually exclusive; choose one actuator backend")
    if wva.hpa is None and wva.keda is None:
        yield Problem(f"{path}.wva", "either hpa or keda must be specified as the actuator backend")
    if wva.variant_cost and not _COST.fullmatch(wva.variant_cost):
        yield Problem(
            f"{path}.wva.variantCost",
            f"must be a non-negative numeric string such as 10 or 0.5, got {wva.variant_cost!r}",
        )
    if wva.keda is not None:
        modifiers = wva.keda.advanced.scaling_modifiers if wva.keda.advanced is not None else None
        if modifiers is not None and any(
            (modifiers.formula, modifiers.target, modifiers.activation_target, modifiers.metric_type)
        ):
            yield Problem(
                f"{path}.wva.keda.advanced.scalingModifiers",
                "scalingModifiers must not be set: the variant autoscaler decides",
            )
        yield from _keda(wva.keda, scaling, f"{path}.wva.keda")


def _keda(keda: KEDAScalingSpec, scaling: ScalingSpec, path: str) -> Iterator[Problem]:
    autoscaler = keda.advanced.horizontal_pod_autoscaler_config if keda.advanced is not None else None
    if autoscaler is not None and autoscaler.name:
        yield Problem(
            f"{path}.advanced.horizontalPodAutoscalerConfig.name",
            "horizontalPodAutoscalerConfig.name must not be set: the controller names it",
        )
    if (idle := keda.idle_replica_count) is None:
        return
    if scaling.min_replicas is None:
        yield Problem(
            f"{path}.idleReplicaCount", "minReplicas is required when idleReplicaCount is set, and must be greater"
        )
    elif idle >= scaling.min_replicas:
        yield Problem(
            f"{path}.idleReplicaCount",
            f"idleReplicaCount ({idle}) must be less than minReplicas ({scaling.min_replicas})",
        )


def _rollout(rollout: RolloutStrategy, multi_node: bool, path: str) -> Iterator[Problem]:
    unavailable, surge = rollout.max_unavailable, rollout.max_surge
    bad = [
        Problem(f"{path}.{field}", f"{fault}, got {value!r}")
        for field, value in (("maxUnavailable", unavailable), ("maxSurge", surge))
        if value is not None and (fault := _amount_fault(value))
    ]
    yield from bad
    if bad or unavailable is None or not _is_none_of_one(unavailable, round_up=False):
        return
    if surge is not None and _is_none_of_one(surge, round_up=True):
        yield Problem(
            path, "maxUnavailable and maxSurge cannot both be zero: this would prevent any rolling update progress"
        )
    if surge is None and multi_node:
        yield Problem(f"{path}.maxSurge", "maxSurge is required for multi-node workloads when maxUnavailable is 0")


def _amount_fault(value: int | str) -> str | None:
    if isinstance(value, int):
        return "must be greater than or equal to 0" if value < 0 else None
    if not _PERCENT.fullmatch(value):
        return "must be a number, or a numeric string followed by an ending '%'"
    return "must not be greater than 100%" if len(value) > 4 or int(value[:-1]) > 100 else None


def _is_none_of_one(value: int | str, *, round_up: bool) -> bool:
    """Returns whether the amount, taken of one replica, is none."""
    if isinstance(value, int):
        return value == 0
    percent = int(value[:-1])
    return percent == 0 if round_up else percent < 100


def _offloading(spec: KVCacheOffloadingSpec, path: str) -> Iterator[Problem]:
    if not spec.secondary:
        return
    if _is_zero(spec.cpu):
        yield Problem(f"{path}.cpu", "cpu must be set when secondary tiers are configured")
    for index, tier in enumerate(spec.secondary):
        where = f"{path}.secondary[{index}].fileSystem"
        if tier.file_system is None:
            yield Problem(where, "only fileSystem tiers are supported; fileSystem must be set")
        else:
            yield from _file_system(tier.file_system, where)


def _file_system(tier: FileSystemTierSpec, path: str) -> Iterator[Problem]:
    if (tier.empty_dir is None) == (tier.pvc is None):
        yield Problem(
            path, f"exactly one of emptyDir or pvc must be set; got {'neither' if tier.pvc is None else 'both'}"
        )
    elif tier.pvc is not None:
        if (tier.pvc.spec is None) == (tier.pvc.ref is None):
            yield Problem(
                f"{path}.pvc",
                f"exactly one of spec or ref must be set; got {'neither' if tier.pvc.ref is None else 'both'}",
            )
        elif tier.pvc.ref is not None and not tier.pvc.ref.name:
            yield Problem(f"{path}.pvc.ref.name", "must not be empty")


def _is_zero(quantity: int | float | str) -> bool:
    try:
        return not quantity or Quantity.parse(quantity) == Quantity.parse(0)
    except QuantityError:
        return False

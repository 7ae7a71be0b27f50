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
            yield Problem(f"{path}.scaling", "excludes replicas; remove one of them")
        yield from _scaling(workload.scaling, f"{path}.scaling")
    if workload.rollout_strategy is not None:
        yield from _rollout(workload.rollout_strategy, workload.worker is not None, f"{path}.rolloutStrategy")
    if workload.kv_cache_offloading is not None:
        yield from _offloading(workload.kv_cache_offloading, f"{path}.kvCacheOffloading")


def _parallelism(workload: WorkloadSpec, path: str) -> Iterator[Problem]:
    sizes = workload.parallelism
    if workload.worker is not None and (sizes is None or not (sizes.is_data or sizes.is_pipeline)):
        yield Problem(f"{path}.worker", "needs parallelism.pipeline, or parallelism.data with dataLocal")
    if sizes is None:
        return
    path = f"{path}.parallelism"
    if sizes.is_pipeline and sizes.is_data:
        yield Problem(path, "pipeline excludes data and dataLocal; remove one of them")
    if sizes.data is not None and sizes.data_local is None:
        yield Problem(f"{path}.dataLocal", "is required beside data")
    if sizes.data_local is not None and sizes.data is None:
        yield Problem(f"{path}.data", "is required beside dataLocal")
    for field, size in (("pipeline", sizes.pipeline), ("data", sizes.data), ("dataLocal", sizes.data_local)):
        if size is not None and size <= 0:
            yield Problem(f"{path}.{field}", f"must be at least 1, got {size}")


def _scaling(scaling: ScalingSpec, path: str) -> Iterator[Problem]:
    if scaling.min_replicas is not None and scaling.min_replicas > scaling.max_replicas:
        yield Problem(
            f"{path}.minReplicas", f"must not exceed maxReplicas ({scaling.max_replicas}), got {scaling.min_replicas}"
        )
    if scaling.wva is not None and scaling.keda is not None:
        yield Problem(path, "wva and keda exclude each other; choose one")
    elif scaling.keda is not None:
        if not scaling.keda.triggers:
            yield Problem(f"{path}.keda.triggers", "needs at least one trigger")
        yield from _keda(scaling.keda, scaling, f"{path}.keda")
    elif scaling.wva is not None:
        yield from _wva(scaling.wva, scaling, path)
    else:
        yield Problem(path, "needs wva or keda")


def _wva(wva: WVASpec, scaling: ScalingSpec, path: str) -> Iterator[Problem]:
    if (wva.hpa is None) == (wva.keda is None):
        got = "neither" if wva.hpa is None else "both"
        yield Problem(f"{path}.wva", f"needs either hpa or keda, got {got}")
    if wva.variant_cost and not _COST.fullmatch(wva.variant_cost):
        yield Problem(f"{path}.wva.variantCost", f"must be a number such as 10 or 0.5, got {wva.variant_cost!r}")
    if wva.keda is not None:
        modifiers = wva.keda.advanced.scaling_modifiers if wva.keda.advanced is not None else None
        if modifiers is not None and any(
            (modifiers.formula, modifiers.target, modifiers.activation_target, modifiers.metric_type)
        ):
            yield Problem(
                f"{path}.wva.keda.advanced.scalingModifiers", "must not be set: the variant autoscaler decides"
            )
        yield from _keda(wva.keda, scaling, f"{path}.wva.keda")


def _keda(keda: KEDAScalingSpec, scaling: ScalingSpec, path: str) -> Iterator[Problem]:
    autoscaler = keda.advanced.horizontal_pod_autoscaler_config if keda.advanced is not None else None
    if autoscaler is not None and autoscaler.name:
        yield Problem(f"{path}.advanced.horizontalPodAutoscalerConfig.name", "must not be set: the controller names it")
    if (idle := keda.idle_replica_count) is None:
        return
    if scaling.min_replicas is None:
        yield Problem(f"{path}.idleReplicaCount", "needs minReplicas, which must be greater")
    elif idle >= scaling.min_replicas:
        yield Problem(f"{path}.idleReplicaCount", f"must be less than minReplicas ({scaling.min_replicas}), got {idle}")


def _rollout(rollout: RolloutStrategy, multi_node: bool, path: str) -> Iterator[Problem]:
    unavailable, surge = rollout.max_unavailable, rollout.max_surge
    bad = [
        Problem(f"{path}.{field}", f"must be a number of at least 0 or a percentage up to 100%, got {value!r}")
        for field, value in (("maxUnavailable", unavailable), ("maxSurge", surge))
        if value is not None and not _is_amount(value)
    ]
    yield from bad
    if bad or unavailable is None or not _is_none_of_one(unavailable, round_up=False):
        return
    if surge is not None and _is_none_of_one(surge, round_up=True):
        yield Problem(path, "maxUnavailable and maxSurge must not both be zero: nothing could ever be replaced")
    if surge is None and multi_node:
        yield Problem(f"{path}.maxSurge", "is required when maxUnavailable is 0: nothing could ever be replaced")


def _is_amount(value: int | str) -> bool:
    if isinstance(value, int):
        return value >= 0
    return _PERCENT.fullmatch(value) is not None and len(value) <= 4 and int(value[:-1]) <= 100


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
        yield Problem(f"{path}.cpu", "is required beside secondary")
    for index, tier in enumerate(spec.secondary):
        where = f"{path}.secondary[{index}].fileSystem"
        if tier.file_system is None:
            yield Problem(where, "is required: other tiers are not supported")
        else:
            yield from _file_system(tier.file_system, where)


def _file_system(tier: FileSystemTierSpec, path: str) -> Iterator[Problem]:
    if (tier.empty_dir is None) == (tier.pvc is None):
        yield Problem(path, f"needs emptyDir or pvc, got {'neither' if tier.pvc is None else 'both'}")
    elif tier.pvc is not None:
        if (tier.pvc.spec is None) == (tier.pvc.ref is None):
            yield Problem(f"{path}.pvc", f"needs spec or ref, got {'neither' if tier.pvc.ref is None else 'both'}")
        elif tier.pvc.ref is not None and not tier.pvc.ref.name:
            yield Problem(f"{path}.pvc.ref.name", "must not be empty")


def _is_zero(quantity: int | float | str) -> bool:
    try:
        return not quantity or Quantity.parse(quantity) == Quantity.parse(0)
    except QuantityError:
        return False

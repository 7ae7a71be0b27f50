"""Validates ServingRuntimes and ClusterServingRuntimes, each beside the others of its scope."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from isvc.api.completion import complete
from isvc.api.inferenceservice.implementations import CONTAINER, containers_of
from isvc.api.servingruntime import ClusterServingRuntime, ServingRuntime, ServingRuntimeSpec, SupportedModelFormat
from isvc.api.validation import GOOD, Problem, Verdict, is_exempt
from isvc.api.validation.containers import KNOWN_GPUS, blocked_env, parallel_env, parallel_sizes, unknown_gpus
from isvc.kube.objects import Object, name_of

WORKER_CONTAINER = "worker-container"
"""The container of a worker."""
Runtime = ServingRuntime | ClusterServingRuntime


def validate_runtime(
    new: Object,
    others: Iterable[Object],
    old: Object | None = None,
    kind: type[Runtime] = ServingRuntime,
    gpus: Iterable[str] = KNOWN_GPUS,
) -> Verdict:
    """Judges whether a runtime may be stored beside `others`, the runtimes that could serve the same models."""
    new = complete(new, kind)
    runtime = kind.decode(new)
    if runtime.spec.is_disabled or is_exempt(old, new):
        return GOOD
    before = kind.decode(old).spec if old is not None else None
    return Verdict.of(
        _problems(runtime, before, [kind.decode(each) for each in others if name_of(each) != name_of(new)], tuple(gpus))
    )


def _problems(
    runtime: Runtime, before: ServingRuntimeSpec | None, others: Iterable[Runtime], gpus: tuple[str, ...]
) -> Iterator[Problem]:
    yield from _own_priorities(runtime.spec)
    for other in others:
        yield from _priorities(runtime.spec, other)
    yield from _workers(runtime.spec, before, gpus)
    yield from blocked_env(containers_of(runtime.spec.pod), "spec.containers")
    if runtime.spec.worker_spec is not None:
        yield from blocked_env(containers_of(runtime.spec.worker_spec.pod), "spec.workerSpec.containers")


def _own_priorities(spec: ServingRuntimeSpec) -> Iterator[Problem]:
    """Checks that one format has one priority: it decides between runtimes, not between versions."""
    first: dict[str, int | None] = {}
    for index, each in enumerate(spec.supported_model_formats):
        if not each.auto_select:
            continue
        priority = first.setdefault(each.name, each.priority)
        if None not in (priority, each.priority) and priority != each.priority:
            yield Problem(
                f"spec.supportedModelFormats[{index}].priority",
                f"different priorities assigned for the model format {each.name}: {priority}, got {each.priority}",
            )


def _priorities(spec: ServingRuntimeSpec, other: Runtime) -> Iterator[Problem]:
    theirs = other.spec
    comparable = not theirs.is_disabled and spec.is_multi_model == theirs.is_multi_model
    if not comparable or not set(spec.protocol_versions) & set(theirs.protocol_versions):
        return
    for index, mine in enumerate(spec.supported_model_formats):
        if any(_ties(mine, each) for each in theirs.supported_model_formats):
            yield Problem(
                f"spec.supportedModelFormats[{index}].priority",
                f"same priority assigned for the model format {mine.name} in {other.metadata.name};"
                f" choose another than {mine.priority}",
            )


def _ties(mine: SupportedModelFormat, theirs: SupportedModelFormat) -> bool:
    return (
        bool(mine.auto_select and theirs.auto_select)
        and mine.name.lower() == theirs.name.lower()
        and mine.version == theirs.version
        and mine.priority is not None
        and mine.priority == theirs.priority
    )


def _workers(spec: ServingRuntimeSpec, before: ServingRuntimeSpec | None, gpus: tuple[str, ...]) -> Iterator[Problem]:
    worker = spec.worker_spec
    if worker is None:
        if before is not None and before.worker_spec is not None:
            yield Problem(
                "spec.workerSpec",
                "removing workerSpec where it already exists is not allowed; create another runtime instead",
            )
        return
    containers = containers_of(worker.pod)
    if len(containers) != 1:
        many = "setting multiple containers in workerSpec is not allowed"
        yield Problem("spec.workerSpec.containers", many if containers else "must be one container, got none")
    for index, container in enumerate(containers_of(spec.pod)):
        if container.get("name") == CONTAINER:
            yield from parallel_env(container, f"spec.containers[{index}]")
            yield from unknown_gpus(container, f"spec.containers[{index}]", spec.annotations, gpus)
    if containers and containers[0].get("name") == WORKER_CONTAINER:
        yield from unknown_gpus(containers[0], "spec.workerSpec.containers[0]", spec.annotations, gpus)
    yield from parallel_sizes(worker.pipeline_parallel_size, worker.tensor_parallel_size, "spec.workerSpec")

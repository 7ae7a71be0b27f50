"""Validates environment variables and GPUs of containers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import orjson

from isvc.api.annotations import GPU_RESOURCE_TYPES
from isvc.api.inferenceservice.implementations import env_value
from isvc.api.validation import Problem
from isvc.kube.objects import Object

BLOCKED_ENV = ("PYTHONPATH",)
"""Variables that change which code a model server runs."""
PARALLEL_ENV = {"PIPELINE_PARALLEL_SIZE": "pipelineParallelSize", "TENSOR_PARALLEL_SIZE": "tensorParallelSize"}
_ORDINARY = {"cpu", "memory", "storage", "ephemeral-storage"}
KNOWN_GPUS = ("nvidia.com/gpu", "amd.com/gpu", "intel.com/gpu", "habana.ai/gaudi")


def blocked_env(containers: Iterable[Object], path: str) -> Iterator[Problem]:
    for index, container in enumerate(containers):
        yield from blocked_env_of(container, f"{path}[{index}]")


def blocked_env_of(container: Object, path: str) -> Iterator[Problem]:
    for name in BLOCKED_ENV:
        if env_value(container, name) is not None:
            yield Problem(f"{path}.env", f"setting {name} is not allowed for security reasons; remove it")


def parallel_env(container: Object, path: str) -> Iterator[Problem]:
    """Sizes are fields of workerSpec; as variables they would contradict them."""
    for name, field in PARALLEL_ENV.items():
        if env_value(container, name) is not None:
            yield Problem(
                f"{path}.env", f"setting {name} in environment variables is not allowed; use workerSpec.{field}"
            )


def unknown_gpus(
    container: Object, path: str, annotations: Mapping[str, str], known: Iterable[str] = KNOWN_GPUS
) -> Iterator[Problem]:
    """Yields resources of a multi-node model that are neither ordinary nor GPUs we know."""
    listed = annotations.get(GPU_RESOURCE_TYPES, "")
    more = gpu_list(listed) if listed else []
    if more is None:
        yield Problem(
            f"metadata.annotations[{GPU_RESOURCE_TYPES}]",
            f'must be a valid JSON array of resource names such as ["example.com/gpu"], got {listed!r}',
        )
        return
    allowed = {*_ORDINARY, *known, *more}
    resources = container.get("resources") or {}
    asked = {name for kind in ("limits", "requests") for name in resources.get(kind) or {}}
    for name in sorted(asked - allowed):
        yield Problem(
            f"{path}.resources",
            f"Unknown GPU resource type {name}; list it in the annotation {GPU_RESOURCE_TYPES}"
            f" or use one of {', '.join(known)}",
        )


def gpu_list(text: str) -> list[str] | None:
    """Returns the resources that the annotation adds to the GPUs we know; None for a text that is no list of names."""
    try:
        names = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    good = isinstance(names, list) and names and all(isinstance(name, str) and name for name in names)
    return names if good else None


def parallel_sizes(pipeline: int | None, tensor: int | None, path: str) -> Iterator[Problem]:
    for field, size in (("pipelineParallelSize", pipeline), ("tensorParallelSize", tensor)):
        if size is not None and size < 1:
            yield Problem(f"{path}.{field}", f"cannot be less than 1, got {size}")

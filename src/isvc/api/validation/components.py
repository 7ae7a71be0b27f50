"""Validates what predictor, transformer and explainer have in common."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from isvc.api.inferenceservice import ExplainerSpec, PredictorSpec
from isvc.api.inferenceservice.frameworks import FRAMEWORKS
from isvc.api.inferenceservice.implementations import (
    Component,
    Implementation,
    containers_of,
    env_value,
    implementations,
)
from isvc.api.inferenceservice.models import ModelStorageSpec, PredictorExtensionSpec
from isvc.api.protocols import PROTOCOL_ENV, Protocol
from isvc.api.validation import Problem
from isvc.api.validation.containers import blocked_env, blocked_env_of
from isvc.api.validation.scaling import extension
from isvc.storage_schemes import SCHEMES

_SCHEMES = tuple(prefix for scheme in SCHEMES if scheme.storage for prefix in scheme.prefixes)
_WITH_STORAGE_RULES = ("tensorflow", "pytorch", "onnx", "huggingface", "pmml")
_GPU_IMAGE = "-gpu"
_GPU, _GPU_SLICE = "nvidia.com/gpu", "nvidia.com/mig"


def component_problems(component: Component, path: str) -> Iterator[Problem]:
    """Checks that there is exactly one implementation, good by itself, and sound settings around it."""
    chosen = implementations(component)
    if len(chosen) != 1:
        yield _not_one(component, chosen, path)
    elif isinstance(component, PredictorSpec):
        yield from _implementation(component, chosen[0], path)
    yield from extension(component, path)


def _not_one(component: Component, chosen: list[Implementation], path: str) -> Problem:
    if isinstance(component, PredictorSpec):
        wanted = f"exactly one of model, {', '.join(FRAMEWORKS)}, or containers"
    else:
        wanted = "exactly one of art, or containers" if isinstance(component, ExplainerSpec) else "containers"
    got = " and ".join(each.field for each in chosen) or "none"
    return Problem(path, f"{wanted} must be specified; got {got}")


def _implementation(predictor: PredictorSpec, chosen: Implementation, path: str) -> Iterator[Problem]:
    if chosen.field == "containers":
        container = containers_of(predictor.pod)[0]
        protocol = env_value(container, PROTOCOL_ENV)
        if protocol is not None and protocol not in (Protocol.V1, Protocol.V2):
            fault = f"invalid protocol {protocol!r}: {PROTOCOL_ENV} must be v1 or v2"
            yield Problem(f"{path}.containers[0].env", fault)
    elif chosen.field != "model":
        yield from _framework(chosen.field, getattr(predictor, chosen.field), f"{path}.{chosen.field}")


def blocked_variables(component: Component, path: str) -> Iterator[Problem]:
    for field in ("containers", "initContainers"):
        yield from blocked_env(containers_of(component.pod, field), f"{path}.{field}")
    if isinstance(component, PredictorSpec):
        for name in ("model", *FRAMEWORKS):
            if (spec := getattr(component, name)) is not None:
                yield from blocked_env_of(spec.container, f"{path}.{name}")
        if component.worker_spec is not None:
            for field in ("containers", "initContainers"):
                yield from blocked_env(containers_of(component.worker_spec.pod, field), f"{path}.workerSpec.{field}")
    elif isinstance(component, ExplainerSpec) and component.art is not None:
        yield from blocked_env_of(component.art.container, f"{path}.art")


def _framework(name: str, spec: PredictorExtensionSpec, path: str) -> Iterator[Problem]:
    """Checks framework fields, which only ModelMesh services keep: elsewhere they become `model`."""
    if name in ("tensorflow", "pytorch") and spec.runtime_version is not None:
        yield from _gpu_image(spec.runtime_version, _wants_gpu(spec), path)
    if name == "onnx" and spec.storage_uri is not None:
        _, dot, ending = posixpath.basename(spec.storage_uri).rpartition(".")
        if dot and ending != "onnx":
            fault = f"expected storageUri file extension: '.onnx', or a folder, got {spec.storage_uri!r}"
            yield Problem(f"{path}.storageUri", fault)
    if spec.storage is not None and name in _WITH_STORAGE_RULES:
        yield from _storage(spec.storage, spec.storage_uri, path)


def _wants_gpu(spec: PredictorExtensionSpec) -> bool:
    """Returns whether it asks for whole or partitioned GPUs of the vendor that the images are for.

    Others bring their own.
    """
    limits = (spec.container.get("resources") or {}).get("limits") or {}
    return any(name == _GPU or name.startswith(_GPU_SLICE) for name in limits)


def _gpu_image(version: str, wants_gpu: bool, path: str) -> Iterator[Problem]:
    if wants_gpu and _GPU_IMAGE not in version:
        yield Problem(f"{path}.runtimeVersion", f"{version!r} is not GPU enabled but GPU resources are requested")
    if not wants_gpu and _GPU_IMAGE in version:
        yield Problem(f"{path}.runtimeVersion", f"{version!r} is GPU enabled but GPU resources are not requested")


def _storage(storage: ModelStorageSpec, uri: str | None, path: str) -> Iterator[Problem]:
    if uri is not None:
        if not uri.startswith(_SCHEMES):
            yield Problem(f"{path}.storageUri", f"must be one of: {', '.join(_SCHEMES)} beside storage, got {uri!r}")
        return
    kind = (storage.parameters or {}).get("type")
    if kind is not None and f"{kind}://" not in _SCHEMES:
        yield Problem(f"{path}.storage.parameters.type", f"must be one of: s3, hdfs, webhdfs, got {kind!r}")

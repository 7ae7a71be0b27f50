"""Validates framework fields, which only ModelMesh services keep: elsewhere they become `model`."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from isvc.api.models import ModelStorageSpec, PredictorExtensionSpec
from isvc.api.validation import Problem

_SCHEMES = ("s3://", "hdfs://", "webhdfs://")
_WITH_STORAGE_RULES = ("tensorflow", "pytorch", "onnx", "huggingface", "pmml")
_GPU_IMAGE = "-gpu"
_GPU, _GPU_SLICE = "nvidia.com/gpu", "nvidia.com/mig"


def framework_problems(name: str, spec: PredictorExtensionSpec, path: str) -> Iterator[Problem]:
    if name in ("tensorflow", "pytorch") and spec.runtime_version is not None:
        yield from _gpu_image(spec.runtime_version, _wants_gpu(spec), path)
    if name == "onnx" and spec.storage_uri is not None:
        _, dot, ending = posixpath.basename(spec.storage_uri).rpartition(".")
        if dot and ending != "onnx":
            yield Problem(f"{path}.storageUri", f"must be a folder or end in .onnx, got {spec.storage_uri!r}")
    if spec.storage is not None and name in _WITH_STORAGE_RULES:
        yield from _storage(spec.storage, spec.storage_uri, path)


def _wants_gpu(spec: PredictorExtensionSpec) -> bool:
    """Whether it asks for whole or partitioned GPUs of the vendor that the images are for; others bring their own."""
    limits = (spec.container.get("resources") or {}).get("limits") or {}
    return any(name == _GPU or name.startswith(_GPU_SLICE) for name in limits)


def _gpu_image(version: str, wants_gpu: bool, path: str) -> Iterator[Problem]:
    if wants_gpu and _GPU_IMAGE not in version:
        yield Problem(f"{path}.runtimeVersion", f"must be a GPU image (…-gpu) when GPUs are asked for, got {version!r}")
    if not wants_gpu and _GPU_IMAGE in version:
        yield Problem(f"{path}.runtimeVersion", f"must not be a GPU image when no GPU is asked for, got {version!r}")


def _storage(storage: ModelStorageSpec, uri: str | None, path: str) -> Iterator[Problem]:
    if uri is not None:
        if not uri.startswith(_SCHEMES):
            yield Problem(f"{path}.storageUri", f"must start with {', '.join(_SCHEMES)} beside storage, got {uri!r}")
        return
    kind = (storage.parameters or {}).get("type")
    if kind is not None and f"{kind}://" not in _SCHEMES:
        yield Problem(f"{path}.storage.parameters.type", f"must be s3, hdfs or webhdfs, got {kind!r}")

"""Whether this Kubernetes can mount images as volumes, which is how models in OCI images may come."""

from __future__ import annotations

from typing import Final

from isvc.serving.config.sections import StorageInitializerConfig

CONDITION: Final = "OciImageVolumeCompatible"
"""A warning; it never affects readiness."""


def image_volume_problem(config: StorageInitializerConfig, version: tuple[str, str] | None) -> tuple[str, str] | None:
    """Returns reason and message of what a version, major and minor, lacks; None where images are no volumes."""
    return _problem(*version) if version and config.oci_mode == "native" else None


def _problem(major: str, minor: str) -> tuple[str, str] | None:
    """Returns None from 1.35 on, and for versions that cannot be read."""
    if not minor.removesuffix("+").isdigit() or (number := int(minor.removesuffix("+"))) >= 35:
        return None
    cluster = f"Cluster K8s {major}.{minor}"
    if number >= 33:
        return "ImageVolumeAlpha", (
            f"{cluster} has ImageVolume feature-gated (K8s 1.33–1.34 beta). "
            "Ensure --feature-gates=ImageVolume=true is set on kube-apiserver and kubelet."
        )
    if number >= 31:
        return "ImageVolumeSubPathUnsupported", (
            f"{cluster} (alpha) does not support subPath on ImageVolume VolumeMounts. "
            "Upgrade to K8s 1.33+ (beta) for full oci+native:// support."
        )
    return "ImageVolumeUnsupported", (
        f"{cluster} does not support ImageVolume (introduced in 1.31 as alpha). "
        "Falling back to modelcar may be required."
    )

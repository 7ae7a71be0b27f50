"""A warning where models come as image volumes and this Kubernetes may not mount them. It never affects readiness."""

from __future__ import annotations

from typing import Final

from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.status.edit import StatusEdit

CONDITION: Final = "OciImageVolumeCompatible"


def report(edit: StatusEdit, observed: Observed) -> None:
    native = observed.config.storage_initializer.oci_mode == "native"
    problem = _problem(*observed.server_version) if native and observed.server_version else None
    if problem is None:
        edit.conditions.clear(CONDITION)
    else:
        edit.conditions.mark_false(CONDITION, *problem)


def _problem(major: str, minor: str) -> tuple[str, str] | None:
    """Reason and message of what this version lacks; None from 1.35 on, and for versions we cannot read."""
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

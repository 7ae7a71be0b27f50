"""How a service is deployed: the modes, their old spellings, and the annotation that chooses one."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from isvc.api.resources import GROUP

DEPLOYMENT_MODE = f"{GROUP}/deploymentMode"


class DeploymentMode(StrEnum):
    STANDARD = "Standard"
    KNATIVE = "Knative"
    MODEL_MESH = "ModelMesh"


_MODES: Mapping[str, DeploymentMode] = {mode.value: mode for mode in DeploymentMode}
OLD_SPELLINGS: Mapping[str, DeploymentMode] = {
    "RawDeployment": DeploymentMode.STANDARD,
    "Serverless": DeploymentMode.KNATIVE,
}


def current_name(spelling: str) -> str:
    """Returns today's name of a mode; a name that we do not know stays as it is."""
    return OLD_SPELLINGS.get(spelling, spelling)


def parse_mode(spelling: str) -> DeploymentMode | None:
    """Returns the mode of this name, old or new."""
    return _MODES.get(current_name(spelling))


def mode_of(annotations: Mapping[str, str], status_mode: str, default: DeploymentMode) -> DeploymentMode:
    """Returns the mode of a service: what it already has, else what it asks for, else the cluster's default.

    A service keeps the mode it was first deployed with: changing it would leave the old children behind.
    """
    if status_mode:
        return parse_mode(status_mode) or default
    return parse_mode(annotations.get(DEPLOYMENT_MODE, "")) or default

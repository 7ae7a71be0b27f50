"""What is chosen for all objects where a manager is started."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

SYSTEM_NAMESPACE: Final = "kserve"
KNATIVE_NAMESPACE: Final = "knative-serving"
WILDCARD_LABEL: Final = "inference"
PRESET_PREFIX: Final = "kserve-"
MODEL_JOBS: Final = "kserve-localmodel-jobs"
MODELS_FOLDER: Final = "/mnt/models"


@dataclass(frozen=True, slots=True)
class ModelNode:
    """The node whose models a program keeps.

    `name`           of the node
    `folder`         where this program sees the folder that holds models
    `host_path`      the same folder, as the node calls it; empty where nobody said
    `job_namespace`  where downloads run
    `user`           who downloads, so that this program may remove it; 0 for whomever the image names
    """

    name: str = ""
    folder: str = MODELS_FOLDER
    host_path: str = ""
    job_namespace: str = MODEL_JOBS
    user: int = 0


@dataclass(frozen=True, slots=True)
class Environment:
    """`system_namespace`   where the configuration, shared presets and CA bundles are
    `knative_namespace`  where Knative keeps its settings
    `cluster_wide`       whether kinds that belong to no namespace may be read and written
    `revision_limit`     how many earlier specs of a service are kept
    `preset_prefix`      how the names of presets begin
    `pin_presets`        whether those names stay what they were when a service was first seen
    `wildcard_label`     stands for `*` where a listener of a gateway takes any host of a domain
    `trusted_images`     how the images begin of schedulers that may ask the API server who somebody is; any, if empty
    `node`               whose models a program keeps that does so
    """

    system_namespace: str = SYSTEM_NAMESPACE
    knative_namespace: str = KNATIVE_NAMESPACE
    cluster_wide: bool = True
    revision_limit: int = 10
    preset_prefix: str = PRESET_PREFIX
    pin_presets: bool = True
    wildcard_label: str = WILDCARD_LABEL
    trusted_images: tuple[str, ...] = ()
    node: ModelNode = field(default_factory=ModelNode)

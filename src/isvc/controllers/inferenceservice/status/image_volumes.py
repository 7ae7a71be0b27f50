"""A warning where models come as image volumes and this Kubernetes may not mount them. It never affects readiness."""

from __future__ import annotations

from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.status.edit import StatusEdit
from isvc.serving.storage.image_volumes import CONDITION, image_volume_problem


def report(edit: StatusEdit, observed: Observed) -> None:
    problem = image_volume_problem(observed.config.storage_initializer, observed.server_version)
    if problem is None:
        edit.conditions.clear(CONDITION)
    else:
        edit.conditions.mark_false(CONDITION, *problem)

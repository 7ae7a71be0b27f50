"""Plans the workload of a service."""

from __future__ import annotations

from isvc.controllers.llmisvc.observed import Observed
from isvc.controllers.llmisvc.planned import Area


def plan(observed: Observed) -> Area:
    return Area()

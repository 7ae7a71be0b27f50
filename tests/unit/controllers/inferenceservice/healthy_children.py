"""What is observed of a service whose children were applied and have become healthy."""

from __future__ import annotations

from dataclasses import replace

from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.plan import plan
from isvc.insight.simulation.platform import Platform
from isvc.kube.objects import name_of


def with_healthy_children(observed: Observed) -> Observed:
    platform = Platform(tuple(observed.knative_domains))
    live = {
        (child.resource, name_of(child.manifest)): {
            **child.manifest,
            "status": platform.healthy(child.resource, child.manifest),
        }
        for child in plan(observed).wanted()
        if child.resource in platform.kinds
    }
    return replace(observed, live=live)

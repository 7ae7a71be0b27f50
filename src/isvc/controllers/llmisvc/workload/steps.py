"""What the steps of planning a workload give: children, each with the words that its refusal starts with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from isvc.controllers.llmisvc.observed import Observed
from isvc.engine.plan import Child
from isvc.kube.resource import Resource
from isvc.serving.refused import Refused


class Wanted(NamedTuple):
    child: Child
    context: str = ""


@contextmanager
def context(words: str) -> Iterator[None]:
    """What is refused inside is refused in these words."""
    try:
        yield
    except Refused as error:
        raise Refused(f"{words}: {error.message}", reason=error.reason) from error


def require(observed: Observed, resource: Resource, name: str, reason: str = "") -> None:
    """Refuses what needs a kind that the cluster does not have."""
    if resource not in observed.served:
        which = f'no matches for kind "{resource.kind}" in version "{resource.api_version}"'
        what = f"{resource.version}.{resource.kind} {observed.namespace}/{name}"
        raise Refused(f"failed to get {what}: {which}", reason=reason)

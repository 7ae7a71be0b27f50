"""A service and the specs that it had before, for `isvc history` and `isvc undo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from isvc.cli import kinds

if TYPE_CHECKING:
    from isvc.kube.objects import Object
    from isvc.kube.resource import Resource
    from isvc.toolkit.client import Client


@dataclass(frozen=True, slots=True)
class History:
    """`earlier` are ControllerRevisions, oldest first."""

    resource: Resource
    service: Object
    earlier: list[Object]

    @property
    def specs(self) -> list[Object]:
        """Of each revision, and last the one of now."""
        return [each["data"].get("spec") or {} for each in self.earlier] + [self.service.get("spec") or {}]


async def history_of(client: Client, name: str, namespace: str) -> History:
    from isvc.api.resources import INFERENCE_SERVICES, LLM_INFERENCE_SERVICES
    from isvc.kube.resource import CONTROLLER_REVISIONS
    from isvc.serving.revisions import HISTORY_LABEL, revisions_of

    resource, service = await kinds.find(client, name, namespace)
    if resource not in (INFERENCE_SERVICES, LLM_INFERENCE_SERVICES):
        raise click.ClickException(f"no history is kept of a {resource.kind}")
    listed = await client.list(CONTROLLER_REVISIONS, namespace, labels=f"{HISTORY_LABEL}={resource.kind.lower()}")
    return History(resource, service, revisions_of(service, listed.items))

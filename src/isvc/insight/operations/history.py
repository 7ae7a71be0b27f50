"""A service and the specs that it had before, and how it is given one of them again."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any

from isvc.api.kinds import NAMED
from isvc.insight.operations import NotPossible, kinds
from isvc.kube.equality import changed_fields
from isvc.kube.go_yaml import dump
from isvc.kube.masking import drop_controls, mask
from isvc.kube.objects import Object, name_of, namespace_of
from isvc.kube.resource import CONTROLLER_REVISIONS, Resource
from isvc.serving.revisions import HISTORY_LABEL, revisions_of
from isvc.toolkit.client import Client, PatchKind

_FIELDS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class History:
    """`earlier` are ControllerRevisions, oldest first."""

    resource: Resource
    service: Object
    earlier: list[Object]

    @property
    def specs(self) -> list[Object]:
        """Returns the spec of each revision, and last the one of now."""
        return [each["data"].get("spec") or {} for each in self.earlier] + [self.service.get("spec") or {}]

    def revision(self, number: int | None) -> Object:
        """Returns the revision of that number; without one, the last whose spec is not that of now."""
        name = name_of(self.service)
        if number is not None:
            for each in self.earlier:
                if each["revision"] == number:
                    return each
            known = ", ".join(str(each["revision"]) for each in self.earlier) or "none"
            raise NotPossible(f"{name} has no revision {number}; there are: {known}")
        now = self.specs[-1]
        others = [each for each in self.earlier if (each["data"].get("spec") or {}) != now]
        if not others:
            raise NotPossible(f"{name} has no earlier spec: it has not changed since its history is kept")
        return others[-1]


async def find_history(client: Client, name: str, namespace: str) -> History:
    resource, service = await kinds.find(client, name, namespace)
    return await read_history(client, resource, service)


async def read_history(client: Client, resource: Resource, service: Object) -> History:
    if not any(row.keeps_history for row in NAMED if row.resource == resource):
        raise NotPossible(f"no history is kept of a {resource.kind}")
    labels = f"{HISTORY_LABEL}={resource.kind.lower()}"
    listed = await client.list(CONTROLLER_REVISIONS, namespace_of(service), labels=labels)
    return History(resource, service, revisions_of(service, listed.items))


def summary(before: Any, after: Any) -> str:
    """Names the fields that changed from one spec to the next."""
    paths = [*changed_fields(before, after, "spec")]
    more = f" and {len(paths) - _FIELDS_SHOWN} more" if len(paths) > _FIELDS_SHOWN else ""
    return ", ".join(paths[:_FIELDS_SHOWN]) + more


def undo_patch(history: History, revision: Object) -> list[Object]:
    """Returns the JSON patch that restores that spec; refused if the service has changed since it was read."""
    version = history.service["metadata"]["resourceVersion"]
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": "/spec", "value": revision["data"].get("spec") or {}},
    ]


async def undo(client: Client, history: History, revision: Object) -> None:
    service = history.service
    await client.patch(
        history.resource, name_of(service), undo_patch(history, revision), namespace_of(service), kind=PatchKind.JSON
    )


def difference(before: Any, after: Any, name_before: str, name_after: str) -> str:
    """Returns the unified diff of two values as YAML, without their secrets."""
    old, new = (drop_controls(dump(mask(value))).splitlines(keepends=True) for value in (before, after))
    return "".join(difflib.unified_diff(old, new, name_before, name_after))

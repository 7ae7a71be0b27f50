"""ControllerRevisions: the pod templates that a StatefulSet or DaemonSet has had, numbered.

`kubectl rollout history` and `undo` read them, and pods carry the hash of theirs as a label.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from isvc.kube.objects import Object, deep_copy, dig, labels_of, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_ref
from isvc.kube.resource import CONTROLLER_REVISIONS, Resource
from isvc.local.controllers.rollout import template_hash
from isvc.toolkit.cache import OWNER
from isvc.toolkit.context import Context

HASH: Final = "controller-revision-hash"


def revisions(context: Context, owner: Object) -> list[Object]:
    """Returns the revisions of an owner, oldest first."""
    found = context.cache.by_index(CONTROLLER_REVISIONS, OWNER, uid_of(owner))
    return sorted(found, key=lambda item: (item.get("revision", 0), name_of(item)))


def template_of(revision: Object) -> Object:
    template = deep_copy(dig(revision, "data", "spec", "template") or {})
    template.pop("$patch", None)
    return template


async def current_revision(context: Context, owner: Object, resource: Resource) -> Object:
    """Returns the revision of the owner's template as it is now, made the newest."""
    known = revisions(context, owner)
    wanted = _revision(owner, resource, number=max((item["revision"] for item in known), default=0) + 1)
    live = next((item for item in known if name_of(item) == name_of(wanted)), None)
    if live is None:
        return await context.create_or_get(CONTROLLER_REVISIONS, wanted)
    if live is not known[-1]:  # a rollback
        return await context.patch(CONTROLLER_REVISIONS, live, {"revision": wanted["revision"]})
    return live


def _revision(owner: Object, resource: Resource, number: int) -> Object:
    template = dig(owner, "spec", "template") or {}
    value = template_hash(template)
    metadata = {
        "name": f"{name_of(owner)}-{value}",
        "namespace": namespace_of(owner),
        "labels": {**(dig(template, "metadata", "labels") or {}), HASH: value},
        "ownerReferences": [controller_ref(resource.typed(owner))],
    }
    data = {"spec": {"template": {**template, "$patch": "replace"}}}
    return CONTROLLER_REVISIONS.manifest(metadata, data=data, revision=number)


async def forget_revisions(context: Context, owner: Object, used: Collection[str]) -> None:
    """Deletes the oldest that no pod has, beyond `revisionHistoryLimit`."""
    limit = dig(owner, "spec", "revisionHistoryLimit")
    idle = [item for item in revisions(context, owner) if not {name_of(item), labels_of(item).get(HASH)} & set(used)]
    for item in idle[: max(0, len(idle) - (10 if limit is None else limit))]:
        await context.delete(CONTROLLER_REVISIONS, item)

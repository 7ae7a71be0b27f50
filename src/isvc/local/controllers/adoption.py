"""Adoption: a controller adopts objects that match its selector and have no controller, and releases those that no
longer match.

So pods survive a Deployment that was deleted with `--cascade=orphan` and belong to the next one, and a pod whose labels
were removed stays for inspection while another replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from isvc.kube.errors import Conflict, NotFound
from isvc.kube.objects import Key, Object, dig, labels_of, namespace_of, resource_version_of, uid_of
from isvc.kube.owners import controller_of, controller_ref, owner_refs
from isvc.kube.resource import Resource
from isvc.kube.selectors import LabelSelector
from isvc.local.controllers.pods import is_active
from isvc.local.controllers.selection import orphans
from isvc.toolkit.cache import OWNER, Reader
from isvc.toolkit.context import Context
from isvc.toolkit.controller import OwnerOf, Watch


async def claim(context: Context, resource: Resource, owner: Object) -> None:
    """Adopts and releases objects of the owner's namespace; what changes meanwhile is left for the next look.

    The resource has to be read with the index ORPHANS.
    """
    selector = LabelSelector.from_spec(dig(owner, "spec", "selector") or {})
    own = context.cache.by_index(resource, OWNER, uid_of(owner))
    for item in (*own, *orphans(context.cache, resource, namespace_of(owner))):
        references = _wanted_references(item, owner, fits=selector.matches(labels_of(item)))
        if references is None or not is_active(item):
            continue
        version = {"resourceVersion": resource_version_of(item)}
        with suppress(Conflict, NotFound):
            await context.patch(resource, item, {"metadata": {**version, "ownerReferences": references}})


def _wanted_references(item: Object, owner: Object, *, fits: bool) -> list[Object] | None:
    """Returns the references an object should have; None where they are as they should be."""
    controller = controller_of(item)
    if controller is None and fits:
        return [*owner_refs(item), controller_ref(owner)]
    if controller is not None and controller.get("uid") == uid_of(owner) and not fits:
        return [ref for ref in owner_refs(item) if ref.get("uid") != uid_of(owner)]
    return None


def watch_adopted(reader: Reader, resource: Resource, owners: Resource) -> list[Watch]:
    """Returns the watches by which a change of an object reaches its owner, or those who may adopt it."""

    def possible_owners(orphan: Object) -> Iterable[Key]:
        if labels_of(orphan):
            for owner in reader.list(owners, namespace_of(orphan)):
                if LabelSelector.from_spec(dig(owner, "spec", "selector") or {}).matches(labels_of(orphan)):
                    yield Key.of(owner)

    return [Watch(resource, to=OwnerOf(owners)), Watch(resource, to=possible_owners, when=is_orphan_now)]


def is_orphan_now(before: Object | None, after: Object | None) -> bool:
    """Returns whether an object without a controller came, or lost its controller, or has other labels than before."""
    if after is None or controller_of(after) is not None:
        return False
    return before is None or controller_of(before) is not None or labels_of(before) != labels_of(after)

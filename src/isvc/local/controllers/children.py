"""Writing what an object is made of: created when it is missing, updated where it is not as wanted."""

from __future__ import annotations

from isvc.kube.equality import covers
from isvc.kube.objects import Object, name_of, namespace_of, uid_of
from isvc.kube.owners import controller_of, controller_ref, is_controlled_by
from isvc.kube.resource import Resource
from isvc.toolkit.context import Context


class NotOwned(Exception):
    """An object of the wanted name belongs to somebody else; the text goes into a condition."""


async def ensure(context: Context, resource: Resource, wanted: Object, owner: Object) -> Object:
    """Returns the child as it is now. What is immutable in it has to be the same at every call. Raises NotOwned."""
    name, namespace = name_of(wanted), namespace_of(wanted)
    metadata = {**wanted["metadata"], "ownerReferences": [controller_ref(owner)]}
    wanted = resource.typed({**wanted, "metadata": metadata})
    live = context.cache.get(resource, name, namespace) or await context.create_or_get(resource, wanted)
    if not is_controlled_by(live, uid_of(owner)):
        by = controller_of(live)
        whose = f"{by['kind']} {by['name']}" if by else "nobody"
        raise NotOwned(f'There is an existing {resource.kind} "{name}" that we do not own (it belongs to {whose}).')
    if _is_as_wanted(live, wanted):
        return live
    metadata = {**live["metadata"]}
    for field in ("labels", "annotations"):
        metadata[field] = {**(metadata.get(field) or {}), **(wanted["metadata"].get(field) or {})}
    return await context.update(resource, {**wanted, "metadata": metadata})


def _is_as_wanted(live: Object, wanted: Object) -> bool:
    """Maps of text are compared by what is wanted, a template also by what is no longer wanted in it."""
    metadata = {field: wanted["metadata"].get(field) or {} for field in ("labels", "annotations")}
    same_template = "template" not in wanted["spec"] or live["spec"].get("template") == wanted["spec"]["template"]
    return same_template and covers(live["metadata"], metadata) and covers(live["spec"], wanted["spec"])

"""PUT, and the part of it that PATCH shares: a new state that follows from the live one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from isvc.apiserver import refusals
from isvc.apiserver.access.escalation import check_escalation
from isvc.apiserver.http.response import Response
from isvc.apiserver.objects import metadata
from isvc.apiserver.objects.managed_fields import track
from isvc.apiserver.request import Call
from isvc.apiserver.resources.description import Description
from isvc.apiserver.store.entry import Entry
from isvc.apiserver.store.store import Stale
from isvc.apiserver.verbs import body
from isvc.apiserver.verbs.create import create_object, settle_namespace
from isvc.apiserver.verbs.pipeline import Api, admission_request, answer, from_stored, refuse, to_client, to_stored
from isvc.kube.objects import Object, deep_copy, generation_of

ATTEMPTS = 8
NOT_STATUS_ONLY = ("apiVersion", "kind", "metadata", "status")

#: From the live object (a copy that may be changed) to the wanted one, both in the request's version.
Change = Callable[[Object], Awaitable[Object]]


async def update(api: Api, call: Call) -> Response:
    wanted = body.read(call)
    settle_namespace(wanted, call)
    name = wanted["metadata"].get("name")
    if not name:
        raise refusals.nameless(call.name)
    if name != call.name:
        raise refusals.misnamed(name, call.name)
    description = call.description
    if api.store.latest(description.collection, call.namespace, call.name) is None:
        if description.strategy.create_on_update and not call.subresource:
            if wanted["metadata"].get("uid"):
                uid = wanted["metadata"]["uid"]
                raise refusals.precondition(description.resource, call.namespace, call.name, uid, "")
            wanted["metadata"].pop("resourceVersion", None)
            return await create_object(api, call, wanted)
        raise refusals.not_found(description.resource, call.name)
    if not wanted["metadata"].get("resourceVersion") and not description.strategy.unconditional_update:
        raise refusals.no_version(description.resource, name)

    async def replace(_: Object) -> Object:
        return deep_copy(wanted)

    return await change(api, call, replace)


async def change(api: Api, call: Call, wanted: Change, tracked: bool = False) -> Response:
    """Applies a change to the live object, again if another write came between.

    `tracked` when the change itself kept managedFields.
    """
    description = call.description
    for _ in range(ATTEMPTS):
        entry = latest(api, call)
        old = await from_stored(description, entry)
        new = await wanted(deep_copy(old))
        demanded = (new["metadata"].get("resourceVersion") or "").removeprefix("0")
        if demanded and demanded != old["metadata"]["resourceVersion"]:
            raise refusals.modified(description.resource, call.name)
        check_uid(call, new, old)
        try:
            return await _write(api, call, entry, new, old, tracked)
        except Stale:
            if demanded and call.request.method == "PUT":
                raise refusals.modified(description.resource, call.name) from None
    raise refusals.modified(description.resource, call.name)


def latest(api: Api, call: Call) -> Entry:
    """Returns the newest stored revision of the requested object."""
    entry = api.store.latest(call.description.collection, call.namespace, call.name)
    if entry is None:
        raise refusals.not_found(call.description.resource, call.name)
    return entry


def check_uid(call: Call, new: Object, old: Object) -> None:
    uid = new["metadata"].get("uid")
    if uid and uid != old["metadata"]["uid"]:
        found = old["metadata"]["uid"]
        raise refusals.precondition(call.description.resource, call.namespace, call.name, uid, found)


async def _write(api: Api, call: Call, entry: Entry, new: Object, old: Object, tracked: bool) -> Response:
    description = call.description
    restrict(call, new, old)
    if not tracked:
        track(call, new, old)
    request = admission_request(call, "UPDATE", call.name)
    new = await api.admission.mutate(request, new, old) or new
    new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    metadata.prepare_for_update(new, old)
    restrict(call, new, old)
    if call.subresource == "status" and description.custom:
        new["metadata"] = {**old["metadata"], "managedFields": new["metadata"].get("managedFields") or []}
        metadata.tidy(new["metadata"])
    description.strategy.prepare_for_update(new, old, call.subresource)
    count_generation(call, new, old)
    release = description.strategy.allocate(new, old, call.dry_run) if not call.subresource else None
    try:
        errors = metadata.validate(new, "path", description.resource.namespaced) + metadata.validate_update(new, old)
        errors *= 2  # Kubernetes checks metadata once for all kinds and once more for each, and says so twice
        errors += description.strategy.validate_update(new, old, call.subresource)
        refuse(description, call.name, errors)
        for warning in description.strategy.warnings(new, old):
            call.request.warn(warning)
        check_escalation(api.rbac, request, new, old)
        await api.admission.validate(request, new, old)
        if new == old:
            return Response(await to_client(description, entry))
        return await _store(api, call, entry, new)
    finally:
        if release:
            release()


async def _store(api: Api, call: Call, entry: Entry, new: Object) -> Response:
    """Writes, or deletes when this update removed the last finalizer of an object that is going away."""
    description = call.description
    if call.dry_run:
        return answer(new)
    stored = await to_stored(description, new)
    if is_finished(description, stored):
        removed = await api.store.remove(entry, entry.parse())  # watchers are shown what was stored last
        new["metadata"]["resourceVersion"] = str(removed.rv)
        return answer(new)
    collection = description.collection
    written = await api.store.put(collection, entry.namespace, entry.name, stored, entry, description.epoch)
    return Response(written.raw if stored is new else await to_client(description, written))


def is_finished(description: Description, obj: Object) -> bool:
    """Returns whether nothing holds back the removal of an object any more."""
    meta = obj["metadata"]
    if not meta.get("deletionTimestamp") or meta.get("finalizers") or meta.get("deletionGracePeriodSeconds"):
        return False
    return not description.strategy.is_held(obj)


def restrict(call: Call, new: Object, old: Object) -> None:
    """Lets a subresource change its part of the object and nothing else; the main resource leaves status alone."""
    description = call.description
    if call.subresource == "status":
        for field in [field for field in new if field not in NOT_STATUS_ONLY and field not in old]:
            del new[field]
        for field, value in old.items():
            if field not in NOT_STATUS_ONLY:
                new[field] = value
    elif description.status and call.subresource in ("", "scale"):
        if "status" in old:
            new["status"] = old["status"]
        else:
            new.pop("status", None)
    description.strategy.restrict(new, old, call.subresource)


def count_generation(call: Call, new: Object, old: Object) -> None:
    if not call.description.strategy.generation or call.subresource in ("status", "binding"):
        return
    if call.description.strategy.is_new_generation(new, old):
        new["metadata"]["generation"] = generation_of(old) + 1

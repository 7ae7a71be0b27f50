"""POST: a new object."""

from __future__ import annotations

from isvc.apiserver import refusals
from isvc.apiserver.access.escalation import check_escalation
from isvc.apiserver.http.response import Response
from isvc.apiserver.objects import metadata
from isvc.apiserver.objects.managed_fields import track
from isvc.apiserver.request import Call
from isvc.apiserver.store.store import Stale
from isvc.apiserver.verbs import body
from isvc.apiserver.verbs.pipeline import Api, admission_request, answer, check_namespace, refuse, to_client, to_stored
from isvc.kube.errors import BadRequest
from isvc.kube.objects import Object, is_being_deleted

GENERATED_NAME_ATTEMPTS = 8


async def create(api: Api, call: Call) -> Response:
    obj = body.read(call)
    settle_namespace(obj, call)
    if obj["metadata"].get("resourceVersion") and not call.dry_run:
        raise refusals.Unspecific("resourceVersion should not be set on objects to be created")
    return await create_object(api, call, obj)


async def create_object(api: Api, call: Call, obj: Object, tracked: bool = False) -> Response:
    """Stores a decoded object; also how an apply (`tracked`) or a PUT to a missing name creates."""
    description, meta = call.description, obj["metadata"]
    generated = not meta.get("name") and bool(meta.get("generateName"))
    check_namespace(api, call, meta.get("name") or meta.get("generateName") or "Unknown")
    without_status = description.status and not description.strategy.created_with_status
    if without_status:
        obj.pop("status", None)
    if not tracked:
        track(
            call, {k: v for k, v in obj.items() if k != "status" or not description.status}, description.strategy.blank
        )
    request = admission_request(call, "CREATE", meta.get("name", ""))
    obj = await api.admission.mutate(request, obj, None) or obj
    metadata.prepare_for_create(obj, call.namespace)
    if without_status:
        obj.pop("status", None)
    if description.strategy.generation:
        obj["metadata"]["generation"] = 1
    description.strategy.prepare_for_create(obj, call.user)
    release = description.strategy.allocate(obj, None, call.dry_run)
    try:
        errors = metadata.validate(obj, description.names, description.resource.namespaced)
        refuse(description, obj["metadata"].get("name", ""), [*errors, *description.strategy.validate_create(obj)])
        for warning in description.strategy.warnings(obj, None):
            call.request.warn(warning)
        request.name = obj["metadata"]["name"]
        check_escalation(api.rbac, request, obj, None)
        await api.admission.validate(request, obj, None)
        return await _store(api, call, obj, generated)
    finally:
        release()


async def _store(api: Api, call: Call, obj: Object, generated: bool) -> Response:
    description, collection = call.description, call.description.collection
    stored = await to_stored(description, obj)
    for _ in range(GENERATED_NAME_ATTEMPTS):
        name = stored["metadata"]["name"]
        if api.store.latest(collection, call.namespace, name) is None:
            if call.dry_run:
                seen = await description.strategy.convert([stored], description.resource.api_version)
                return answer(obj if stored is obj else seen[0], 201)
            check_namespace(api, call, name)
            try:
                entry = await api.store.put(
                    description.collection, call.namespace, name, stored, None, description.epoch
                )
            except Stale:
                pass
            else:
                if stored is obj:
                    return Response(entry.raw, 201)
                return Response(await to_client(description, entry), 201)
        if not generated:
            break
        stored["metadata"]["name"] = metadata.generate_name(stored["metadata"]["generateName"])
    name = stored["metadata"]["name"]
    live = api.store.latest(collection, call.namespace, name)
    ending = live is not None and is_being_deleted(live.parse())
    raise refusals.already_exists(description.resource, name, ending)


def settle_namespace(obj: Object, call: Call) -> None:
    """Puts an object into the namespace of the path, whether it says so or not."""
    meta, is_namespaced = obj["metadata"], call.description.resource.namespaced
    named = meta.get("namespace")
    if named and (not is_namespaced or named != call.namespace):
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    if is_namespaced:
        meta["namespace"] = call.namespace
    else:
        meta.pop("namespace", None)

"""DELETE, of one object or of a selection.

An object goes at once unless something asks it to wait: finalizers (among them those that a propagation policy adds), a
grace period (pods on a node), or a namespace's content. Until then it stays, marked with a deletion timestamp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from isvc.apiserver import refusals
from isvc.apiserver.field_errors import invalid, not_supported
from isvc.apiserver.http.response import Response
from isvc.apiserver.request import Call
from isvc.apiserver.resources.strategy import FieldError
from isvc.apiserver.store.entry import Entry
from isvc.apiserver.store.store import Stale
from isvc.apiserver.verbs import body, listing
from isvc.apiserver.verbs.pipeline import Api, admission_request, answer, from_stored, to_stored
from isvc.apiserver.verbs.update import ATTEMPTS, is_finished
from isvc.kube.errors import BadRequest, NotFound
from isvc.kube.objects import GVK, Object, deep_copy, is_being_deleted
from isvc.kube.timestamps import timestamp

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
MAX_GRACE = 2**31
_NUMBER = re.compile("-?[0-9]{1,10}")
POLICIES = ("Foreground", "Background", "Orphan")


async def delete(api: Api, call: Call) -> Response:
    options = read_options(call)
    deleted, gone = await delete_object(api, call, options)
    description = call.description
    if gone and not description.returns_deleted:
        uid = deleted["metadata"]["uid"]
        details = refusals.details(description.resource, call.name, uid=uid)
        return Response.success(details=details)
    accepted = not gone and options.get("orphanDependents") is False
    return answer(deleted, 202 if accepted else 200)


async def delete_collection(api: Api, call: Call) -> Response:
    options = read_options(call)
    selected = await listing.select(api, call)
    entries, page = selected.page()
    items = []
    for entry in entries:
        one = Call(call.request, call.description, entry.namespace, entry.name, "", call.dry_run)
        found = await from_stored(call.description, entry)
        try:
            await delete_object(api, one, options)
        except NotFound:
            continue
        if not call.description.custom:
            found = {field: value for field, value in found.items() if field not in ("kind", "apiVersion")}
        items.append(found)
    return Response.json(selected.envelope(items, page))


async def delete_object(api: Api, call: Call, options: Object) -> tuple[Object, bool]:
    """Returns the object as it was left, and whether it is gone."""
    description = call.description
    for _ in range(ATTEMPTS):
        entry = api.store.latest(description.collection, call.namespace, call.name)
        if entry is None:
            break
        old = await from_stored(description, entry)
        check_preconditions(call, options, old)
        request = admission_request(call, "DELETE", call.name, options)
        await api.admission.mutate(request, None, old)
        await api.admission.validate(request, None, old)
        new = mark(call, deep_copy(old), options)
        try:
            return await _store(api, call, entry, new, old)
        except Stale:
            continue
    raise refusals.not_found(description.resource, call.name)


async def _store(api: Api, call: Call, entry: Entry, new: Object, old: Object) -> tuple[Object, bool]:
    description = call.description
    gone = is_finished(description, new)
    if gone and not is_being_deleted(old) and not description.strategy.graceful:
        new = old  # goes at once, so it is never seen marked
    if call.dry_run:
        return new, gone
    if gone:
        if description.strategy.graceful and new != old:
            marked = await to_stored(description, new)
            entry = await api.store.put(
                description.collection, entry.namespace, entry.name, marked, entry, description.epoch
            )
        removed = await api.store.remove(entry, await to_stored(description, new))
        return await from_stored(description, removed), True
    if new == old:
        return old, False
    stored = await to_stored(description, new)
    kept = await api.store.put(description.collection, entry.namespace, entry.name, stored, entry, description.epoch)
    return await from_stored(description, kept), False


def mark(call: Call, obj: Object, options: Object) -> Object:
    """Returns the object with its deletion asked for."""
    meta = obj["metadata"]
    strategy = call.description.strategy
    _propagate(meta, options, strategy.default_propagation)
    asked = options.get("gracePeriodSeconds")
    if not meta.get("deletionTimestamp"):
        grace = strategy.grace_seconds(obj, asked)
        due = datetime.now(UTC) + timedelta(seconds=grace)
        meta["deletionTimestamp"] = timestamp(due)
        if strategy.begin_deletion(obj):
            return obj
        meta["deletionGracePeriodSeconds"] = grace
        if meta.get("generation"):
            meta["generation"] += 1
    elif asked is not None and asked < (meta.get("deletionGracePeriodSeconds") or 0):
        due = datetime.fromisoformat(meta["deletionTimestamp"])
        sooner = due - timedelta(seconds=meta["deletionGracePeriodSeconds"] - asked)
        meta["deletionTimestamp"] = timestamp(sooner)
        meta["deletionGracePeriodSeconds"] = asked
    return obj


def _propagate(meta: dict[str, Any], options: Object, by_default: str) -> None:
    policy = options.get("propagationPolicy")
    orphan = options.get("orphanDependents")
    if policy is None and orphan is None and by_default:
        policy = by_default
    finalizers = list(meta.get("finalizers") or ())
    if policy is None and orphan is None:
        return
    wanted = ORPHAN if policy == "Orphan" or orphan else FOREGROUND if policy == "Foreground" else ""
    finalizers = [each for each in finalizers if each not in (ORPHAN, FOREGROUND)] + ([wanted] if wanted else [])
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)


def check_preconditions(call: Call, options: Object, obj: Object) -> None:
    """Refuses to delete another object, or another revision, than was meant."""
    wanted = options.get("preconditions") or {}
    meta, resource = obj["metadata"], call.description.resource
    if wanted.get("uid") and wanted["uid"] != meta["uid"]:
        raise refusals.outdated_deletion(resource, call.name, "UID", wanted["uid"], meta["uid"])
    version = wanted.get("resourceVersion")
    if version and version != meta["resourceVersion"]:
        raise refusals.outdated_deletion(resource, call.name, "ResourceVersion", version, meta["resourceVersion"])


def read_options(call: Call) -> Object:
    """Reads DeleteOptions from the body or, failing that, from the query."""
    options = check_options(body.parse(call.request, "DeleteOptions") if call.request.body else _from_query(call))
    if options.get("dryRun"):
        call.dry_run = True
    return options


def _from_query(call: Call) -> Object:
    query = call.request.query
    options: Object = {name: query[name] for name in ("gracePeriodSeconds", "propagationPolicy") if name in query}
    if "orphanDependents" in query:
        options["orphanDependents"] = call.request.flag("orphanDependents")
    return options


def check_options(options: Any) -> Object:
    """Returns DeleteOptions that can be followed, or refuses them; a negative grace period is one second."""
    if not isinstance(options, dict):
        raise BadRequest("DeleteOptions must be an object")
    grace = options.get("gracePeriodSeconds")
    if grace is not None:
        if isinstance(grace, str) and _NUMBER.fullmatch(grace):  # from the query
            grace = int(grace)
        if isinstance(grace, bool) or not isinstance(grace, int) or abs(grace) > MAX_GRACE:
            raise BadRequest("gracePeriodSeconds must be a number of seconds")
        options["gracePeriodSeconds"] = grace if grace >= 0 else 1
    wanted = options.get("preconditions") or {}
    if not isinstance(wanted, dict) or not all(isinstance(value, str | None) for value in wanted.values()):
        raise BadRequest("preconditions must map uid and resourceVersion to strings")
    if not isinstance(options.get("propagationPolicy"), str | None):
        raise BadRequest("propagationPolicy must be a string")
    if errors := [*_errors(options)]:
        raise refusals.invalid(GVK("meta.k8s.io", "v1", "DeleteOptions"), "", errors)
    return options


def _errors(options: Object) -> Iterator[FieldError]:
    policy, dry_run = options.get("propagationPolicy"), options.get("dryRun")
    if policy is not None and options.get("orphanDependents") is not None:
        why = "orphanDependents and deletionPropagation cannot be both set"
        yield invalid("propagationPolicy", policy, why)
    elif policy is not None and policy not in POLICIES:
        yield not_supported("propagationPolicy", policy, (*POLICIES, "nil"))
    if dry_run and dry_run != ["All"]:
        yield not_supported("dryRun", dry_run, ("All",))

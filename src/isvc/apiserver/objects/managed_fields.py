"""managedFields: which manager set which field, kept on every write."""

from __future__ import annotations

from isvc.apiserver import refusals
from isvc.apiserver.objects import metadata
from isvc.apiserver.objects.typed import type_errors
from isvc.apiserver.request import Call
from isvc.kube import fields
from isvc.kube.errors import Conflict
from isvc.kube.objects import Object


def track(call: Call, new: Object, live: Object | None) -> None:
    """Records that this request's manager wrote what differs between `live` and `new`."""
    description = call.description
    try:
        new["metadata"]["managedFields"] = fields.track(
            new,
            live,
            description.strategy.schema,
            manager=call.manager,
            api_version=description.gvk.api_version,
            subresource=call.subresource,
            now="" if call.subresource == "scale" else metadata.now(),
        )
    except fields.ShapeError:
        # The object does not fit its schema; validation says so better than this could.
        new["metadata"]["managedFields"] = live["metadata"].get("managedFields", []) if live else []


def _beyond_reach(call: Call, intent: Object) -> tuple[str, ...]:
    """What a request to this path cannot set, and so nobody comes to own by it."""
    if call.subresource == "status":
        return tuple(field for field in intent if field not in ("metadata", "status"))
    return ("status",) if call.description.status else ()


def apply_fields(call: Call, intent: Object, live: Object | None) -> Object:
    """The live object with a manager's intent applied, or Conflict when others own what it would change."""
    description = call.description
    problem = type_errors(intent, description.strategy.schema)
    if problem:
        raise refusals.untypeable(description.gvk, intent, problem)
    try:
        return fields.apply(
            live,
            intent,
            description.strategy.schema,
            manager=call.field_manager,
            api_version=description.gvk.api_version,
            force=call.request.flag("force"),
            subresource=call.subresource,
            now=metadata.now(),
            unset=description.strategy.blank,
            ignore=_beyond_reach(call, intent),
        )
    except fields.ShapeError as error:
        raise refusals.untypeable(call.description.gvk, intent, str(error)) from None
    except fields.ApplyConflict as conflict:
        raise Conflict(str(conflict), details={"causes": conflict.causes}) from None

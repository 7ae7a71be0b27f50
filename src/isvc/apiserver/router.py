"""From a path and a method to the verb that answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from isvc.apiserver import forms, refusals
from isvc.apiserver.access.reviews import GROUPS, Reviews
from isvc.apiserver.field_errors import not_supported, too_long
from isvc.apiserver.http.response import Response
from isvc.apiserver.request import Call, Request
from isvc.apiserver.resources.description import Description
from isvc.apiserver.resources.registry import Registry
from isvc.apiserver.target import Target
from isvc.apiserver.verbs import (
    binding,
    connect,
    create,
    delete,
    eviction,
    logs,
    patch,
    proxy,
    read,
    scale,
    token,
    update,
    usage,
    watch,
)
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.objects import GVK
from isvc.kube.resource import NODE_METRICS, POD_METRICS
from isvc.wire.http1 import message
from isvc.wire.turns import room_in_turn

_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}
_VALIDATIONS = ("Ignore", "Strict", "Warn")


_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
_OBJECT_VERBS = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_Verb = Callable[[Api, Call], Awaitable[message.Response]]
_VERBS: Mapping[str, _Verb] = {
    "create": create.create,
    "delete": delete.delete,
    "deletecollection": delete.delete_collection,
    "get": read.get,
    "list": read.list_objects,
    "patch": patch.patch,
    "update": update.update,
    "watch": watch.watch,
}
_MEASURED = {"get": usage.get, "list": usage.list_metrics}
#: What answers for kinds that are not stored.
_UNSTORED: Mapping[str, Mapping[str, _Verb]] = {
    "bindings": {"create": binding.create},
    str(NODE_METRICS): _MEASURED,
    str(POD_METRICS): _MEASURED,
}
_WHOLE = {"GET": read.get, "PUT": update.update, "PATCH": patch.patch}
_CONNECT = {"GET": connect.connect, "POST": connect.connect}
_PROXY = dict.fromkeys(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"), proxy.proxy)
#: What answers a subresource, by method. Which kinds have it is for their descriptions to say.
_SUBRESOURCES: Mapping[str, Mapping[str, _Verb]] = {
    "approval": _WHOLE,
    "attach": _CONNECT,
    "binding": {"POST": binding.bind},
    "ephemeralcontainers": _WHOLE,
    "eviction": {"POST": eviction.evict},
    "exec": _CONNECT,
    "finalize": {"PUT": update.update},
    "log": {"GET": logs.log},
    "portforward": _CONNECT,
    "proxy": _PROXY,
    "resize": _WHOLE,
    "scale": {"GET": scale.get, "PUT": scale.put, "PATCH": scale.patch_scale},
    "status": _WHOLE,
    "token": {"POST": token.request_token},
}


class Router:
    def __init__(self, api: Api, reviews: Reviews) -> None:
        self._api = api
        self._reviews = reviews

    def fast_get(self, request: Request, target: Target) -> Response | None:
        """Answers the most frequent request: one object, as it is stored."""
        if request.query_string or target.subresource or not target.name or request.method != "GET":
            return None
        description = self._api.registry.find(target.group, target.version, target.plural)
        if description is None or description.custom or description.storage or not _scope_fits(description, target):
            return None
        if request.accept not in ("application/json", "", "*/*") and forms.requested_form(request) != forms.OBJECT:
            return None
        entry = self._api.store.get(description.collection, target.namespace, target.name)
        return Response(entry.raw) if entry else None

    def resource(self, request: Request, target: Target) -> Awaitable[message.Response] | Response:
        description = self._api.registry.find(target.group, target.version, target.plural)
        if description is None:
            return nothing_here(self._api.registry, target.group)
        if not _scope_fits(description, target):
            raise refusals.unknown_resource()
        call = Call(request, description, target.namespace, target.name, target.subresource)
        if description.deprecation:
            request.warn(description.deprecation)
        if request.method != "GET" and target.subresource != "proxy":
            read_options(call)
        if target.group in GROUPS:
            if request.method != "POST":
                raise refusals.method_not_allowed()
            return self._reviews.review(call)
        if target.subresource:
            return self._subresource(call)
        return self._object(call) if target.name else self._collection(call)

    def _collection(self, call: Call) -> Awaitable[message.Response]:
        _require_namespace(call)
        verb = _COLLECTION_VERBS.get(call.request.method, "")
        if verb == "list" and call.request.flag("watch"):
            verb = "watch"
        return self._verb(call, verb)

    def _object(self, call: Call) -> Awaitable[message.Response]:
        return self._verb(call, _OBJECT_VERBS.get(call.request.method, ""))

    def _verb(self, call: Call, verb: str) -> Awaitable[message.Response]:
        if verb not in call.description.verbs:
            raise refusals.method_not_allowed()
        verbs = _UNSTORED.get(call.description.collection, _VERBS)
        return self._answer(verbs[verb], call)

    def _subresource(self, call: Call) -> Awaitable[message.Response]:
        if not call.description.has_subresource(call.subresource):
            raise refusals.unknown_resource()
        verbs = _SUBRESOURCES[call.subresource]
        if call.request.method not in verbs:
            raise refusals.method_not_allowed()
        return self._answer(verbs[call.request.method], call)

    async def _answer(self, verb: _Verb, call: Call) -> message.Response:
        """Answers one of the requests that came together, when those before have left room."""
        await room_in_turn()
        return await verb(self._api, call)


def read_options(call: Call) -> None:
    """Checks dryRun, fieldManager and fieldValidation."""
    query = call.request.query
    if not query:
        return
    errors = []
    if (dry_run := query.get("dryRun")) is not None:
        if dry_run != "All":
            errors.append(not_supported("dryRun", [dry_run], ("All",)))
        call.dry_run = True
    call.field_manager = query.get("fieldManager", "")
    if len(call.field_manager) > 128:
        errors.append(too_long("fieldManager", 128))
    if validation := query.get("fieldValidation"):
        if validation not in _VALIDATIONS:
            errors.append(not_supported("fieldValidation", validation, ("", *_VALIDATIONS)))
        call.field_validation = validation
    if errors:
        raise refusals.invalid(GVK("meta.k8s.io", "v1", _OPTIONS[call.request.method]), "", errors)


def _scope_fits(description: Description, target: Target) -> bool:
    if not description.resource.namespaced:
        return not target.namespace
    return bool(target.namespace) or not target.name


def _require_namespace(call: Call) -> None:
    """Refuses to create or clear a namespaced kind in more than one namespace at a time."""
    needs = call.description.resource.namespaced and not call.namespace
    if needs and call.request.method in ("POST", "DELETE"):
        raise refusals.method_not_allowed()


def nothing_here(registry: Registry, group: str) -> Response:
    """Answers what is not served: with a Status within a built-in group, else a plain 404."""
    if registry.has_builtin_group(group):
        return Response.error(refusals.unknown_resource())
    return Response.text("404 page not found\n", 404)

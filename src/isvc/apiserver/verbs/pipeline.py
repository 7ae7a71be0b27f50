"""What every write goes through, and the parts of the server it needs for that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import orjson

from isvc.apiserver import refusals
from isvc.apiserver.access.identity import Identity
from isvc.apiserver.access.rbac import Rbac
from isvc.apiserver.access.tokens import Tokens
from isvc.apiserver.http.response import Response
from isvc.apiserver.request import AdmissionRequest, Call, Operation
from isvc.apiserver.resources.description import Description
from isvc.apiserver.resources.registry import Registry
from isvc.apiserver.resources.strategy import FieldError
from isvc.apiserver.store.entry import Entry, encode
from isvc.apiserver.store.store import Store
from isvc.apiserver.verbs.node import Nodes
from isvc.kube.errors import BadRequest
from isvc.kube.objects import Object, is_being_deleted
from isvc.kube.resource import NAMESPACES


class Admission(Protocol):
    async def mutate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> Object | None: ...

    async def validate(self, request: AdmissionRequest, obj: Object | None, old: Object | None) -> None: ...


@dataclass(slots=True)
class Api:
    """Everything that verbs work on."""

    store: Store
    registry: Registry
    admission: Admission
    identity: Identity
    tokens: Tokens
    rbac: Rbac
    nodes: Nodes


def admission_request(call: Call, operation: Operation, name: str, options: Object | None = None) -> AdmissionRequest:
    kinds = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}
    common: Object = {"kind": kinds.get(operation, ""), "apiVersion": "meta.k8s.io/v1"}
    if call.field_manager:
        common["fieldManager"] = call.field_manager
    if "fieldValidation" in call.request.query:
        common["fieldValidation"] = call.field_validation
    if call.dry_run:
        common["dryRun"] = ["All"]
    return AdmissionRequest(
        operation=operation,
        description=call.description,
        name=name,
        namespace=call.namespace,
        user=call.user,
        subresource=call.subresource,
        dry_run=call.dry_run,
        options={**common, **(options or {})},
        warnings=call.request.warnings,
    )


def refuse(description: Description, name: str, errors: list[FieldError]) -> None:
    if errors:
        raise refusals.invalid(description.gvk, name, errors)


async def to_stored(description: Description, obj: Object) -> Object:
    """Returns the object in the version that is kept."""
    stored = description.stored
    if stored == description.resource:
        return obj
    return (await description.strategy.convert([obj], stored.api_version))[0]


async def from_stored(description: Description, entry: Entry) -> Object:
    """Returns a fresh dict in the version that was asked for."""
    return (await all_from_stored(description, [entry]))[0]


async def all_from_stored(description: Description, entries: list[Entry]) -> list[Object]:
    """Does the same for many, with one question to a conversion webhook if there is one."""
    objects = [entry.parse() for entry in entries]
    api_version = description.gvk.api_version
    if any(obj["apiVersion"] != api_version for obj in objects):
        objects = await description.strategy.convert(objects, api_version)
    read = description.strategy.read
    return [read(obj) if is_outdated(entry, description) else obj for entry, obj in zip(entries, objects, strict=True)]


def is_outdated(entry: Entry, description: Description) -> bool:
    """Returns whether the schema changed after the object was written."""
    return description.custom and entry.epoch != description.epoch


def refresh(entry: Entry, description: Description) -> None:
    """Reads the object through the present schema, once; on disk it stays as it was written."""
    if is_outdated(entry, description):
        entry.raw = encode(description.strategy.read(entry.parse()))
        entry.epoch = description.epoch


async def to_client(description: Description, entry: Entry) -> bytes:
    """Returns the object as clients of this version see it."""
    if description.stored != description.resource:
        return encode(await from_stored(description, entry))
    refresh(entry, description)
    return entry.raw


def answer(obj: Object, status: int = 200) -> Response:
    try:
        return Response(encode(obj), status)
    except orjson.JSONEncodeError:
        raise BadRequest("the object is nested too deeply") from None


def check_namespace(api: Api, call: Call, name: str) -> None:
    """Refuses to create in a namespace that does not exist, or that is going away."""
    if not call.description.resource.namespaced:
        return
    entry = api.store.latest("namespaces", "", call.namespace)
    if entry is None:
        raise refusals.not_found(NAMESPACES, call.namespace)
    if b'"deletionTimestamp":' in entry.raw and is_being_deleted(entry.parse()):
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {call.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        why = f"unable to create new content in namespace {call.namespace} because it is being terminated"
        raise refusals.forbidden(call.description.resource, name, why, [cause])

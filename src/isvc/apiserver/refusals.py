"""How Kubernetes words its refusals. Clients match on reason and details, people on the message."""

from __future__ import annotations

from collections.abc import Sequence

from isvc.apiserver.description import Description
from isvc.apiserver.strategy import FieldError
from isvc.kube.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    UnsupportedMediaType,
)
from isvc.kube.objects import GVK, Object
from isvc.kube.resource import Resource


def details(resource: Resource, name: str, **more: object) -> Object:
    told: Object = {"name": name, "group": resource.group, "kind": resource.plural}
    if not resource.group:
        del told["group"]
    if not name:
        del told["name"]
    return {**told, **more}


def not_found(resource: Resource, name: str) -> NotFound:
    return NotFound(f'{resource} "{name}" not found', details=details(resource, name))


def already_exists(resource: Resource, name: str) -> AlreadyExists:
    return AlreadyExists(f'{resource} "{name}" already exists', details=details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> Conflict:
    return Conflict(f'Operation cannot be fulfilled on {resource} "{name}": {why}', details=details(resource, name))


def modified(resource: Resource, name: str) -> Conflict:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def precondition(resource: Resource, name: str, what: str, wanted: str, found: str) -> Conflict:
    why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    return conflict(resource, name, why)


def forbidden(resource: Resource, name: str, why: str, causes: list[Object] | None = None) -> Forbidden:
    told = details(resource, name, **({"causes": causes} if causes else {}))
    return Forbidden(f'{resource} "{name}" is forbidden: {why}', details=told)


def invalid(gvk: GVK, name: str, errors: Sequence[FieldError]) -> Invalid:
    texts = list(dict.fromkeys(str(error) for error in errors))
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    title = f"{gvk.kind}.{gvk.group}" if gvk.group else gvk.kind
    told: Object = {"name": name, "group": gvk.group, "kind": gvk.kind, "causes": [e.cause() for e in errors]}
    if not gvk.group:
        del told["group"]
    if not name:
        del told["name"]
    return Invalid(f'{title} "{name}" is invalid: {listed}', details=told)


def unknown_resource() -> NotFound:
    return NotFound("the server could not find the requested resource", details={})


def method_not_allowed(description: Description, verb: str) -> MethodNotAllowed:
    resource = description.resource
    return MethodNotAllowed(
        f"{verb} is not supported on resources of kind {str(resource)!r}".replace("'", '"'),
        details=details(resource, ""),
    )


def unsupported(accepted: Sequence[str]) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    )


def wrong_kind(found: Object, expected: GVK) -> BadRequest:
    gvk = GVK.of(found)
    title = f"{gvk.kind}.{gvk.version}.{gvk.group}" if gvk.group else f"{gvk.kind}.{gvk.version}."
    if gvk.api_version != expected.api_version:
        return BadRequest(
            f"the API version in the data ({gvk.api_version}) does not match the expected API version"
            f" ({expected.api_version})"
        )
    return BadRequest(
        f'{gvk.kind} in version "{gvk.version}" cannot be handled as a {expected.kind}: converting ({title}) to'
        f" ({expected.kind}): unknown conversion"
    )

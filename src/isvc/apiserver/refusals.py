"""How Kubernetes words its refusals. Clients match on reason and details, people on the message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isvc.apiserver import field_errors
from isvc.apiserver.resources.strategy import FieldError
from isvc.kube.builtin.shape import Undecodable
from isvc.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    UnsupportedMediaType,
)
from isvc.kube.objects import GVK, Object, name_of, namespace_of
from isvc.kube.resource import Resource
from isvc.kube.schemas import definition_name


def details(resource: Resource, name: str, **more: object) -> Object:
    return _without_empty({"name": name, "group": resource.group, "kind": resource.plural, **more})


def _without_empty(fields: Object) -> Object:
    return {name: value for name, value in fields.items() if value}


def not_found(resource: Resource, name: str) -> NotFound:
    return NotFound(f'{resource} "{name}" not found', details=details(resource, name))


def already_exists(resource: Resource, name: str, ending: bool = False) -> AlreadyExists:
    state = "object is being deleted: " if ending else ""
    return AlreadyExists(f'{state}{resource} "{name}" already exists', details=details(resource, name))


def conflict(resource: Resource, name: str, why: str) -> Conflict:
    return Conflict(f'Operation cannot be fulfilled on {resource} "{name}": {why}', details=details(resource, name))


def modified(resource: Resource, name: str) -> Conflict:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def precondition(resource: Resource, namespace: str, name: str, wanted: str, found: str) -> Conflict:
    """Refuses an update that names another uid."""
    key = "/".join(filter(None, ("/registry", resource.plural, namespace, name)))
    why = f"Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
    why = f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: {why}"
    return conflict(resource, name, why)


def outdated_deletion(resource: Resource, name: str, what: str, wanted: str, found: str) -> Conflict:
    """Refuses a deletion whose preconditions do not hold."""
    guess = "deleted and then recreated" if what == "UID" else "modified"
    why = f"the {what} in the precondition ({wanted}) does not match the {what} in record ({found})"
    fields = {**details(resource, name), "kind": resource.kind}
    title = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'Operation cannot be fulfilled on {title} "{name}": {why}. The object might have been {guess}'
    return Conflict(message, details=fields)


class Unspecific(ApiError):
    """A refusal to which Kubernetes gives no reason."""

    reason = ""


def nameless(name: str) -> BadRequest:
    return BadRequest(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")


def misnamed(name: str, call_name: str) -> BadRequest:
    return BadRequest(f"the name of the object ({name}) does not match the name on the URL ({call_name})")


def join_reasons(reasons: Iterable[str]) -> str:
    """Joins reasons as Go shows a list of errors: one bare, more in brackets, none twice."""
    distinct = list(dict.fromkeys(reasons))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def forbidden(resource: Resource, name: str, why: str, causes: list[Object] | None = None) -> Forbidden:
    fields = details(resource, name, causes=causes)
    return Forbidden(f'{resource} "{name}" is forbidden: {why}', details=fields)


def invalid(gvk: GVK, name: str, errors: Sequence[FieldError]) -> Invalid:
    listed = join_reasons(map(str, errors))
    title = f"{gvk.kind}.{gvk.group}" if gvk.group else gvk.kind
    fields = _without_empty({"name": name, "group": gvk.group, "kind": gvk.kind, "causes": [e.cause() for e in errors]})
    return Invalid(f'{title} "{name}" is invalid: {listed}', details=fields)


def no_version(resource: Resource, name: str) -> Invalid:
    error = field_errors.invalid("metadata.resourceVersion", 0, "must be specified for an update")
    fields = details(resource, name, causes=[error.cause()])
    return Invalid(f'{resource} "{name}" is invalid: {error}', details=fields)


def unknown_resource() -> NotFound:
    return NotFound("the server could not find the requested resource", details={})


def method_not_allowed() -> MethodNotAllowed:
    return MethodNotAllowed("the server does not allow this method on the requested resource", details={})


def unsupported(accepted: Sequence[str]) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    )


def wrong_kind(found: Object, expected: GVK, custom: bool) -> ApiError:
    gvk = GVK.of(found)
    if custom:
        if gvk.api_version != expected.api_version:
            return BadRequest(
                f"the API version in the data ({gvk.api_version}) does not match the expected API version"
                f" ({expected.api_version})"
            )
        name = name_of(found) if isinstance(found.get("metadata"), dict) else ""
        return invalid(gvk, name, [field_errors.invalid("kind", gvk.kind, f"must be {expected.kind}")])
    if definition_name(gvk):
        package = expected.group.partition(".")[0] or "core"
        why = f"converting ({gvk.version}.{gvk.kind}) to ({package}.{expected.kind}): unknown conversion"
    else:
        scheme = "pkg/runtime/scheme.go:111"
        why = f'no kind "{gvk.kind}" is registered for version "{gvk.api_version}" in scheme "{scheme}"'
    return Undecodable(gvk, expected.kind, why)


def untypeable(gvk: GVK, obj: Object, why: str) -> ApiError:
    """Refuses an apply that does not fit the schema."""
    where = "/".join((namespace_of(obj), name_of(obj)))
    kind = f"{gvk.api_version}, Kind={gvk.kind}"
    return Unspecific(f"failed to create typed patch object ({where}; {kind}): {why}")


def inconvertible(gvk: GVK, obj: Object, why: str) -> ApiError:
    """Refuses an apply whose values do not fit the Go type."""
    where = "/".join((namespace_of(obj), name_of(obj)))
    kind = f"{gvk.group}/{gvk.version}, Kind={gvk.kind}"
    reason = why.partition(": ")[2] or why
    return Unspecific(
        f"failed to convert new object ({where}; {kind}) to proper version: unable to convert unstructured object to"
        f" {kind}: error decoding from json: {reason}"
    )


def invalid_patch(shown: str, why: str) -> Invalid:
    error = field_errors.invalid("patch", shown, why)
    return Invalid(f' "" is invalid: {error}', details={"causes": [error.cause()]})


def unrecognized(kind: str, body: bytes, why: str) -> BadRequest:
    """Refuses a body that is no object at all, shown as far as it is text."""
    shown = body.decode("utf-8", "replace")[:1024] if body.startswith(b"{") else body[:1024].hex() or "<empty>"
    return BadRequest(f"the object provided is unrecognized (must be of type {kind}): {why} ({shown})")

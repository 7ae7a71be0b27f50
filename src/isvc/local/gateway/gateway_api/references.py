"""Which backends a route may name: Services and InferencePools, in other namespaces where a ReferenceGrant says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from isvc.kube.objects import Object, dig, namespace_of
from isvc.kube.resource import SERVICES, Resource
from isvc.local.gateway.endpoints.pools import pool_of
from isvc.serving.thirdparty import HTTP_ROUTES


class Reason(NamedTuple):
    """Why something is not accepted, in the words of the Gateway API and in one sentence."""

    reason: str
    message: str


def backend_references(route: Object) -> Iterator[Object]:
    """Yields the backends that the rules of a route name."""
    return (reference for rule in dig(route, "spec", "rules") or () for reference in rule.get("backendRefs") or ())


def backend_kind(reference: Object) -> Resource | None:
    """Returns the kind of a backend; None for one that takes no requests here."""
    is_service = (reference.get("group") or "", reference.get("kind") or SERVICES.kind) == ("", SERVICES.kind)
    return SERVICES if is_service else pool_of(reference)


def refuse_reference(reference: Object, namespace: str, grants: Iterable[Object]) -> Reason | None:
    """Returns why a route of this namespace may not name a backend, if it may not."""
    resource = backend_kind(reference)
    if resource is None:
        return Reason("InvalidKind", f"the gateway knows no backends of the kind {reference['kind']}")
    wanted, name = reference.get("namespace") or namespace, reference.get("name", "")
    if wanted == namespace or any(_permits(grant, namespace, resource, wanted, name) for grant in grants):
        return None
    message = f"no ReferenceGrant lets routes of namespace {namespace} name {resource.kind} {wanted}/{name}"
    return Reason("RefNotPermitted", message)


def _permits(grant: Object, namespace: str, resource: Resource, wanted: str, name: str) -> bool:
    route = (HTTP_ROUTES.group, HTTP_ROUTES.kind, namespace)
    sources = [(each["group"], each["kind"], each["namespace"]) for each in dig(grant, "spec", "from") or ()]
    targets = [each for each in dig(grant, "spec", "to") or () if each.get("name") in (None, "", name)]
    kinds = [(each["group"], each["kind"]) for each in targets]
    return namespace_of(grant) == wanted and route in sources and (resource.group, resource.kind) in kinds

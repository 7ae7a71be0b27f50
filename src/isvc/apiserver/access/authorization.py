"""Whether a request may go on: RBAC asked about its verb and its target."""

from __future__ import annotations

from isvc.apiserver.access.attributes import Attributes, forbidden, verb_of
from isvc.apiserver.access.rbac import MASTERS, Rbac
from isvc.apiserver.request import Request
from isvc.apiserver.target import Target

_INTO_PODS = ("pods/attach", "pods/exec", "pods/portforward")


def authorize(rbac: Rbac, request: Request, target: Target | None) -> None:
    """Raises Forbidden if the request's user may not make it."""
    user = request.user
    assert user is not None
    if MASTERS in user.groups:
        return
    if target is None or not target.plural:
        wanted = Attributes(request.method.lower(), path=request.path)
    else:
        verb = verb_of(request, named=bool(target.name))
        # A namespace is a resource in itself.
        namespace = target.name if (target.group, target.plural) == ("", "namespaces") else target.namespace
        wanted = Attributes(verb, target.group, target.plural, target.subresource, namespace, target.name)
    for each in (wanted, *_also_wanted(request, wanted)):
        if rbac.allows(user, each) is None:
            raise forbidden(user, each)


def _also_wanted(request: Request, wanted: Attributes) -> list[Attributes]:
    """Who gets into a pod through a WebSocket sends a GET, and still has to have the right to create."""
    if wanted.verb == "get" and wanted.full_resource in _INTO_PODS and "upgrade" in request.headers:
        return [wanted._replace(verb="create")]
    return []

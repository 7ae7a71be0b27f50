"""What a request amounts to for an authorizer: a verb on a resource, or on a path."""

from __future__ import annotations

from typing import NamedTuple

from isvc.apiserver.request import Request, User
from isvc.kube.errors import Forbidden
from isvc.kube.objects import Object

_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {**_OBJECT_VERBS, "GET": "list", "HEAD": "list", "DELETE": "deletecollection"}


class Attributes(NamedTuple):
    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""  # of what is no resource

    @property
    def full_resource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def verb_of(request: Request, *, named: bool) -> str:
    if named:
        return _OBJECT_VERBS.get(request.method, request.method.lower())
    if request.method == "GET" and request.flag("watch"):
        return "watch"
    return _COLLECTION_VERBS.get(request.method, request.method.lower())


def forbidden(user: User, wanted: Attributes, why: str = "") -> Forbidden:
    """Returns the refusal of a request, in Kubernetes' words."""
    if wanted.path:
        message = f'User "{user.username}" cannot {wanted.verb} path "{wanted.path}"'
        return Forbidden(f"forbidden: {message}", details={})
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    resource = f'resource "{wanted.full_resource}" in API group "{wanted.group}"'
    reason = f'User "{user.username}" cannot {wanted.verb} {resource} {where}{f": {why}" if why else ""}'
    title = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    named = f' "{wanted.name}"' if wanted.name else ""
    fields: Object = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    return Forbidden(f"{title}{named} is forbidden: {reason}", details={k: v for k, v in fields.items() if v})

"""Authentication and authorization reviews: who somebody is, and what they may do."""

from __future__ import annotations

from isvc.apiserver import refusals
from isvc.apiserver.access.attributes import Attributes
from isvc.apiserver.access.authentication import Authenticator
from isvc.apiserver.access.rbac import Rbac
from isvc.apiserver.access.tokens import ISSUER
from isvc.apiserver.field_errors import invalid
from isvc.apiserver.http.response import Response
from isvc.apiserver.objects.managed_fields import track
from isvc.apiserver.request import Call, User
from isvc.apiserver.verbs import body
from isvc.kube.objects import Object

GROUPS = ("authentication.k8s.io", "authorization.k8s.io")


class Reviews:
    def __init__(self, authenticator: Authenticator, rbac: Rbac) -> None:
        self._authenticator = authenticator
        self._rbac = rbac

    def review(self, call: Call) -> Response:
        obj = body.read(call)
        obj.pop("status", None)
        track(call, obj, None)
        spec = obj.get("spec") or {}
        match call.description.resource.kind:
            case "SelfSubjectReview":
                obj["status"] = {"userInfo": call.user.info()}
            case "SelfSubjectRulesReview":
                obj["status"] = self._rules(call.user, spec.get("namespace", ""))
            case "TokenReview":
                obj["status"] = self._token(spec)
            case "SelfSubjectAccessReview":
                obj["status"] = self._access(call, call.user, spec)
            case _:
                user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""))
                obj["status"] = self._access(call, user, spec)
        return Response.json(obj, 201)

    def _rules(self, user: User, namespace: str) -> Object:
        rules = self._rbac.rules(user, namespace)
        return {
            "resourceRules": [each for each in rules if "nonResourceURLs" not in each],
            "nonResourceRules": [each for each in rules if "nonResourceURLs" in each],
            "incomplete": False,
        }

    def _token(self, spec: Object) -> Object:
        audiences = tuple(spec.get("audiences") or ())
        found = self._authenticator.token(spec.get("token", ""), audiences or (ISSUER,))
        if found is None:
            return {"authenticated": False, "user": {}}
        return {"authenticated": True, "user": found.user.info(), "audiences": list(found.audiences)}

    def _access(self, call: Call, user: User, spec: Object) -> Object:
        resource, path = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes") or {}
        if bool(resource) == bool(path):
            why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            errors = [invalid("spec.resourceAttributes", resource or None, why)]
            raise refusals.invalid(call.description.gvk, "", errors)
        if path:
            wanted = Attributes(path.get("verb", ""), path=path.get("path", ""))
        else:
            names = ("verb", "group", "resource", "subresource", "namespace", "name")
            wanted = Attributes(*(str(resource.get(name) or "") for name in names))
        reason = self._rbac.allows(user, wanted)
        if reason is None:
            return {"allowed": False}
        return {"allowed": True, **({"reason": reason} if reason else {})}

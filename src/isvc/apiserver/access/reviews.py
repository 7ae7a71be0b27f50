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
from isvc.apiserver.objects.metadata import now
from isvc.apiserver.request import Call, User
from isvc.apiserver.verbs import body
from isvc.kube.errors import BadRequest, Invalid
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
                obj["metadata"]["creationTimestamp"] = now()
                obj["status"] = {"userInfo": call.user.info()}
            case "SelfSubjectRulesReview":
                obj["status"] = self._rules(call.user, spec.get("namespace", ""))
            case "TokenReview":
                obj["status"] = self._token(spec)
            case "SelfSubjectAccessReview":
                obj["status"] = self._access(call, call.user, spec)
            case _:
                if not spec.get("user") and not spec.get("groups"):
                    raise _malformed(call, "spec.user", "", "at least one of user or group must be specified")
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
        if not spec.get("token"):
            raise BadRequest("token is required for TokenReview in authentication")
        found = self._authenticator.token(spec["token"], audiences or (ISSUER,))
        if found is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {"authenticated": True, "user": found.user.info(), "audiences": list(found.audiences)}

    def _access(self, call: Call, user: User, spec: Object) -> Object:
        resource, path = spec.get("resourceAttributes") or {}, spec.get("nonResourceAttributes") or {}
        if resource and path:
            shown = {name.capitalize(): path.get(name, "") for name in ("path", "verb")}
            why = "cannot be specified in combination with resourceAttributes"
            raise _malformed(call, "spec.nonResourceAttributes", shown, why)
        if not resource and not path:
            why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            raise _malformed(call, "spec.resourceAttributes", None, why)
        if path:
            wanted = Attributes(path.get("verb", ""), path=path.get("path", ""))
        else:
            names = ("verb", "group", "resource", "subresource", "namespace", "name")
            wanted = Attributes(*(str(resource.get(name) or "") for name in names))
        reason = self._rbac.allows(user, wanted)
        if reason is None:
            return {"allowed": False}
        return {"allowed": True, **({"reason": reason} if reason else {})}


def _malformed(call: Call, field: str, value: object, why: str) -> Invalid:
    """Returns a refusal that, as Kubernetes' do, leaves out of what kind the review is."""
    return refusals.invalid(call.description.gvk._replace(kind=""), "", [invalid(field, value, why)])

"""Authentication and authorization reviews.

Whoever holds a credential of this server is its owner: it guards the door and keeps no roles. So every question of the
form "may I" is answered with yes, and "who am I" with what the credential says.
"""

from __future__ import annotations

from isvc.apiserver.http.response import Response
from isvc.apiserver.ownership import track
from isvc.apiserver.request import Call, User
from isvc.apiserver.verbs import body
from isvc.kube.objects import Object

GROUPS = ("authentication.k8s.io", "authorization.k8s.io")
_EVERYTHING: Object = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def review(call: Call, known: dict[str, User]) -> Response:
    obj = body.read(call)
    kind = call.description.resource.kind
    obj.pop("status", None)
    track(call, obj, None)
    match kind:
        case "SelfSubjectReview":
            obj["status"] = {"userInfo": call.user.info()}
        case "SelfSubjectRulesReview":
            obj["status"] = _EVERYTHING
        case "TokenReview":
            user = known.get((obj.get("spec") or {}).get("token", ""))
            obj["status"] = (
                {"authenticated": True, "user": user.info()} if user else {"authenticated": False, "user": {}}
            )
        case _:
            obj["status"] = {"allowed": True}
    return Response.json(obj, 201)

"""serviceaccounts/NAME/token: a token that ends, for given audiences, bound to an object or not."""

from __future__ import annotations

from datetime import UTC, datetime

from isvc.apiserver import refusals
from isvc.apiserver.access.tokens import ISSUER
from isvc.apiserver.field_errors import invalid
from isvc.apiserver.http.response import Response
from isvc.apiserver.objects.metadata import now
from isvc.apiserver.request import Call
from isvc.apiserver.verbs import body, read
from isvc.apiserver.verbs.pipeline import Api
from isvc.kube.errors import BadRequest
from isvc.kube.objects import GVK, Object, dig
from isvc.kube.resource import NODES, PODS, SECRETS
from isvc.kube.timestamps import timestamp

REQUEST = GVK("authentication.k8s.io", "v1", "TokenRequest")
_DEFAULT_SECONDS, _LEAST, _MOST = 3600, 600, 1 << 32
_BOUND = {"Pod": PODS, "Node": NODES, "Secret": SECRETS}


async def request_token(api: Api, call: Call) -> Response:
    asked = body.parse(call.request, REQUEST.kind)
    spec = (asked.get("spec") or {}) if isinstance(asked, dict) else None
    if not isinstance(spec, dict):
        raise BadRequest("a TokenRequest and its spec are objects")
    account = read.find(api, call).parse()
    seconds, audiences = spec.get("expirationSeconds") or _DEFAULT_SECONDS, spec.get("audiences") or [ISSUER]
    _check(seconds, audiences)
    bound = _bound_object(api, call, spec.get("boundObjectRef"), account)
    if call.dry_run:
        token, ends = "", 0
    else:
        token, ends = api.tokens.issue(account, audiences, seconds, bound)
    when = timestamp(datetime.fromtimestamp(ends, UTC))
    metadata = {"name": call.name, "namespace": call.namespace, "creationTimestamp": now()}
    reference = spec.get("boundObjectRef")
    return Response.json(
        {
            "kind": REQUEST.kind,
            "apiVersion": REQUEST.api_version,
            "metadata": metadata,
            "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference},
            "status": {"token": token, "expirationTimestamp": when},
        },
        201,
    )


def _check(seconds: object, audiences: object) -> None:
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise BadRequest("spec.expirationSeconds of a TokenRequest is a number")
    if not isinstance(audiences, list) or not all(isinstance(each, str) for each in audiences):
        raise BadRequest("spec.audiences of a TokenRequest is a list of strings")
    if seconds < _LEAST:
        why = "may not specify a duration less than 10 minutes"
        raise refusals.invalid(REQUEST, "", [invalid("spec.expirationSeconds", seconds, why)])
    if seconds > _MOST:
        why = "may not specify a duration larger than 2^32 seconds"
        raise refusals.invalid(REQUEST, "", [invalid("spec.expirationSeconds", seconds, why)])


def _bound_object(api: Api, call: Call, reference: object, account: Object) -> Object | None:
    """Returns what the token is bound to, as its claims say it."""
    if not isinstance(reference, dict):
        return None
    kind, name = reference.get("kind", ""), reference.get("name", "")
    resource = _BOUND.get(kind)
    if resource is None:
        group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
        raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    entry = api.store.get(str(resource), call.namespace if resource.namespaced else "", name)
    if entry is None:
        raise refusals.not_found(resource, name)
    obj = entry.parse()
    if reference.get("uid") and reference["uid"] != obj["metadata"]["uid"]:
        why = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record"
        raise refusals.conflict(resource, name, f"{why}. The object might have been deleted and then recreated")
    owner = dig(obj, "spec", "serviceAccountName") or "default"
    if kind == "Pod" and owner != account["metadata"]["name"]:
        why = "to pod running with different serviceaccount name."
        raise BadRequest(f"cannot bind token for serviceaccount {call.name!r} {why}")
    return {kind.lower(): {"name": name, "uid": obj["metadata"]["uid"]}}

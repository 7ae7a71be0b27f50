"""Objects of one version as another, by asking the webhook that a CustomResourceDefinition names."""

from __future__ import annotations

import uuid

from isvc.apiserver.admission.caller import Caller, CallFailed
from isvc.kube.errors import InternalError
from isvc.kube.objects import Object, name_of, uid_of

_SECONDS = 30


async def convert_by_webhook(caller: Caller, crd: Object, objects: list[Object], api_version: str) -> list[Object]:
    """Asks once for all objects that are not of the wanted version. The webhook may change labels, annotations and
    everything outside metadata, but not what the object is."""
    webhook = crd["spec"]["conversion"]["webhook"]
    title = f"conversion webhook for {objects[0].get('apiVersion')}, Kind={objects[0].get('kind')}"
    asked = [each for each in objects if each.get("apiVersion") != api_version]
    review = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {"uid": str(uuid.uuid4()), "desiredAPIVersion": api_version, "objects": asked},
    }
    try:
        answer = await caller.post(webhook["clientConfig"], review, timeout=_SECONDS)
    except CallFailed as error:
        raise InternalError(f"{title} failed: {error}") from None
    response = answer.get("response") or {}
    result = response.get("result") or {}
    if result.get("status") != "Success":
        raise InternalError(f"{title} failed: {result.get('message') or 'no reason given'}")
    converted = response.get("convertedObjects") or []
    if len(converted) != len(asked):
        words = f"webhook returned {len(converted)} objects, expected {len(asked)}"
        raise InternalError(f"{title} failed: {words}")
    pairs = zip(asked, converted, strict=True)
    ready = iter([_check_converted(before, after, api_version, title) for before, after in pairs])
    return [each if each.get("apiVersion") == api_version else next(ready) for each in objects]


def _check_converted(before: Object, after: Object, api_version: str, title: str) -> Object:
    if after.get("apiVersion") != api_version or after.get("kind") != before.get("kind"):
        got = f"{after.get('apiVersion')}, Kind={after.get('kind')}"
        raise InternalError(f"{title} returned invalid converted object: wrong version or kind: {got}")
    if name_of(after) != name_of(before) or uid_of(after) != uid_of(before):
        raise InternalError(f"{title} returned invalid metadata: name and uid must not change")
    returned = after.get("metadata") or {}
    metadata = {**(before.get("metadata") or {})}
    for key in ("labels", "annotations"):
        metadata.pop(key, None)
        if returned.get(key):
            metadata[key] = returned[key]
    return {**after, "metadata": metadata}

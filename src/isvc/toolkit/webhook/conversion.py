"""ConversionReview as values: objects of one version in, the same objects of another version out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from isvc.kube.objects import Object
from isvc.toolkit.webhook.reviews import request_of

VERSIONS = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")

ConversionHandler: TypeAlias = Callable[[list[Object], str], list[Object]]


def convert(review: Any, handler: ConversionHandler) -> Object:
    """Answers a decoded ConversionReview. A failure is part of the answer; raises BadRequest when it is none."""
    request = request_of(review, "ConversionReview", VERSIONS)
    response: Object = {"uid": request["uid"]}
    try:
        response["convertedObjects"] = handler(request.get("objects") or [], request.get("desiredAPIVersion", ""))
        response["result"] = {"status": "Success"}
    except Exception as error:
        response["convertedObjects"] = []
        response["result"] = {"status": "Failure", "message": f"conversion failed: {error}"}
    return {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}

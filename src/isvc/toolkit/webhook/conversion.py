"""ConversionReview as values: objects of one version in, the same objects of another version out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from isvc.kube.errors import BadRequest
from isvc.kube.objects import Object

VERSIONS = ("apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1")

ConversionHandler: TypeAlias = Callable[[list[Object], str], list[Object]]


def convert(review: Any, handler: ConversionHandler) -> Object:
    """Answers a decoded ConversionReview. A failure is part of the answer; raises BadRequest when it is none."""
    if not isinstance(review, dict) or review.get("kind") != "ConversionReview":
        raise BadRequest("the body is not a ConversionReview")
    if review.get("apiVersion") not in VERSIONS:
        raise BadRequest(f"ConversionReview {review.get('apiVersion')!r} is not known; known: {', '.join(VERSIONS)}")
    request = review.get("request")
    if not isinstance(request, dict) or not request.get("uid"):
        raise BadRequest("the ConversionReview has no request")
    response: Object = {"uid": request["uid"]}
    try:
        response["convertedObjects"] = handler(request.get("objects") or [], request.get("desiredAPIVersion", ""))
        response["result"] = {"status": "Success"}
    except Exception as error:
        response["convertedObjects"] = []
        response["result"] = {"status": "Failure", "message": f"conversion failed: {error}"}
    return {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}

"""What the reviews have in common that an API server sends to webhooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isvc.kube.errors import BadRequest
from isvc.kube.objects import Object


def request_of(review: Any, kind: str, versions: Sequence[str]) -> Object:
    """Returns the request of a decoded review; raises BadRequest when it is no review of this kind."""
    if not isinstance(review, dict) or review.get("kind") != kind:
        raise BadRequest(f"the body is not a review of the kind {kind}")
    if review.get("apiVersion") not in versions:
        raise BadRequest(f"{kind} {review.get('apiVersion')!r} is not known; known: {', '.join(versions)}")
    request = review.get("request")
    if not isinstance(request, dict) or not request.get("uid"):
        raise BadRequest(f"the {kind} has no request")
    return request

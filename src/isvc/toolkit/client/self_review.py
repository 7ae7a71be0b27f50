"""What the cluster knows about its caller: who it is, and what it may do, as `kubectl auth whoami` and `can-i` ask."""

from __future__ import annotations

from typing import Final

from isvc.kube.objects import dig
from isvc.kube.resource import Resource
from isvc.toolkit.client import Client

SELF_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
SELF_ACCESS_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


async def own_name(client: Client) -> str:
    """Returns the name of the user that the cluster takes us for. Raises ApiError if it takes us for nobody."""
    review = SELF_REVIEWS.typed({})
    return str(dig(await client.create(SELF_REVIEWS, review), "status", "userInfo", "username") or "")


async def may(client: Client, verb: str, group: str, plural: str, namespace: str = "") -> bool:
    """Returns whether we may do that in a namespace; without one, in all of them."""
    asked = {"verb": verb, "group": group, "resource": plural, **({"namespace": namespace} if namespace else {})}
    review = SELF_ACCESS_REVIEWS.typed({"spec": {"resourceAttributes": asked}})
    return bool(dig(await client.create(SELF_ACCESS_REVIEWS, review), "status", "allowed"))

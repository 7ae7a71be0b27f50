"""Who may read an HTTP endpoint: a TokenReview says who asks, a SubjectAccessReview whether that user may.

Answers are cached for as long as controller-runtime's filter does, so that a scrape costs no request.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock, SystemClock
from isvc.toolkit.failure import ClusterError
from isvc.wire.bounded import Expiring

log = logging.getLogger(__name__)

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)

TOKEN_SECONDS = 60.0
ALLOWED_SECONDS = 300.0
DENIED_SECONDS = 30.0
MOST_CACHED = 1024


class Refusal(NamedTuple):
    status: int
    message: str


@dataclass(frozen=True, slots=True)
class User:
    name: str
    uid: str
    groups: tuple[str, ...]
    extra: bytes  # JSON, as the review gave it

    @classmethod
    def of(cls, info: Object) -> User:
        extra = orjson.dumps(info.get("extra") or {}, option=orjson.OPT_SORT_KEYS)
        return cls(info.get("username", ""), info.get("uid", ""), tuple(info.get("groups") or ()), extra)


class Access:
    """Decides over requests that carry a bearer token."""

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self._client = client.without_fence()  # every replica is asked
        self._clock = clock or SystemClock()
        self._users: Expiring[str, User | None] = Expiring(MOST_CACHED, self._clock.monotonic)
        self._verdicts: Expiring[tuple[User, str, str], bool] = Expiring(MOST_CACHED, self._clock.monotonic)

    async def refusal(self, method: str, path: str, authorization: str) -> Refusal | None:
        """Says why the request is refused; returns None if it is allowed."""
        try:
            user = await self._user(authorization)
        except (ApiError, ClusterError) as error:
            log.error("authentication failed: %s", error)
            return Refusal(500, "Authentication failed")
        if user is None:
            return Refusal(401, "Unauthorized")
        try:
            allowed = await self._may(user, method.lower(), path)
        except (ApiError, ClusterError) as error:
            log.error("authorization of %s failed: %s", user.name, error)
            return Refusal(500, f"Authorization for user {user.name} failed")
        return None if allowed else Refusal(403, f"Authorization denied for user {user.name}")

    async def _user(self, authorization: str) -> User | None:
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        digest = hashlib.sha256(token.encode()).hexdigest()
        if digest not in self._users:
            status = await self._review(TOKEN_REVIEWS, {"token": token})
            user = User.of(status.get("user") or {}) if status.get("authenticated") else None
            self._users.keep(digest, user, TOKEN_SECONDS)
        return self._users[digest]

    async def _may(self, user: User, verb: str, path: str) -> bool:
        question = (user, verb, path)
        if question not in self._verdicts:
            who = {"user": user.name, "uid": user.uid, "groups": user.groups, "extra": orjson.loads(user.extra)}
            attributes = {"nonResourceAttributes": {"verb": verb, "path": path}}
            status = await self._review(ACCESS_REVIEWS, who | attributes)
            allowed = status.get("allowed") is True
            self._verdicts.keep(question, allowed, ALLOWED_SECONDS if allowed else DENIED_SECONDS)
        return self._verdicts[question]

    async def _review(self, resource: Resource, spec: Object) -> dict[str, Any]:
        manifest = resource.typed({"spec": spec})
        return (await self._client.create(resource, manifest)).get("status") or {}

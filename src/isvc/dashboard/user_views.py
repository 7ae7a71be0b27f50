"""A view of the cluster for each user, seen with the user's own token: the cluster's own rules say what is in it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from aiohttp import web

from isvc.dashboard.cluster_view import ClusterView
from isvc.dashboard.sign_in import TOKEN
from isvc.dashboard.views_in_use import ViewInUse
from isvc.kube.errors import Forbidden, Unauthorized
from isvc.kube.resource import Resource
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.kubeconfig import ClusterConfig, Impersonation

SELF_REVIEWS: Final = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
MOST_USERS: Final = 50
RECHECK: Final = 60.0  # seconds


class UserViews:
    def __init__(self, config: ClusterConfig, namespaces: Sequence[str] = ()) -> None:
        self._config, self._namespaces = config, namespaces
        self._views: dict[bytes, ViewInUse] = {}
        self._accepted: dict[bytes, float] = {}  # until when
        self._clock = SystemClock()

    async def accepts(self, token: str) -> bool:
        """Whether the cluster knows whose token that is; asked once a minute."""
        key, now = _digest(token), self._clock.monotonic()
        if self._accepted.get(key, 0.0) < now:
            self._accepted.pop(key, None)
            if not await self._is_known(token):
                return False
            self._accepted[key] = now + RECHECK
        return True

    async def _is_known(self, token: str) -> bool:
        review = {"apiVersion": SELF_REVIEWS.api_version, "kind": SELF_REVIEWS.kind}
        async with Client.connect(self._as(token)) as client:
            try:
                await client.create(SELF_REVIEWS, review)
            except Unauthorized:
                return False
            except Forbidden:
                pass  # known, and not even allowed to ask
        return True

    @asynccontextmanager
    async def use(self, request: web.Request) -> AsyncIterator[ClusterView]:
        token = str(request[TOKEN])
        key = _digest(token)
        view = self._views.pop(key, None) or ViewInUse(lambda: self._open(token))
        self._views[key] = view
        while len(self._views) > MOST_USERS and (unused := next((k for k, v in self._views.items() if v.unused), None)):
            await self._views.pop(unused).close()
        async with view.use(request) as opened:
            yield opened

    async def close(self) -> None:
        for view in self._views.values():
            await view.close()

    def _open(self, token: str) -> ClusterView:
        client = Client.connect(self._as(token))
        return ClusterView(client, self._namespaces, when_closed=client.close)

    def _as(self, token: str) -> ClusterConfig:
        """The same cluster, and nothing of who we are ourselves."""
        return replace(
            self._config,
            token=token,
            token_file=None,
            client_certificate=b"",
            client_key=b"",
            basic=None,
            plugin=None,
            impersonate=Impersonation(),
        )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()

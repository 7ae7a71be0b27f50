"""A view of the cluster for each user, seen with the user's own token: the cluster's own rules say what is in it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final

from aiohttp import web

from isvc.dashboard.cluster.scoped_views import ScopedViews
from isvc.dashboard.cluster.view import ClusterView
from isvc.dashboard.cluster.views_in_use import pop_unused
from isvc.dashboard.sign_in import TOKEN
from isvc.kube.errors import Forbidden, Unauthorized
from isvc.toolkit.client import Client
from isvc.toolkit.client.kubeconfig import ClusterConfig, Impersonation
from isvc.toolkit.client.self_review import own_name
from isvc.toolkit.clock import SystemClock

MOST_USERS: Final = 50
RECHECK: Final = 60.0  # seconds


class UserViews:
    asks_directly = False  # users who write a service's status would send requests of ours anywhere

    def __init__(self, config: ClusterConfig, namespaces: Sequence[str] = ()) -> None:
        self._config, self._namespaces = config, namespaces
        self._views: dict[bytes, ScopedViews] = {}
        self._accepted: dict[bytes, float] = {}  # until when
        self._clock = SystemClock()

    async def accepts(self, token: str) -> bool:
        """Returns whether the cluster knows whose token that is; asked once a minute."""
        key, now = _digest(token), self._clock.monotonic()
        if self._accepted.get(key, 0.0) < now:
            self._accepted.pop(key, None)
            if not await self._is_known(token):
                return False
            self._accepted[key] = now + RECHECK
        return True

    async def _is_known(self, token: str) -> bool:
        async with Client.connect(self._as(token)) as client:
            try:
                await own_name(client)
            except Unauthorized:
                return False
            except Forbidden:
                pass  # known, and not even allowed to ask
        return True

    @asynccontextmanager
    async def use(self, request: web.Request) -> AsyncIterator[ClusterView]:
        token = request[TOKEN]
        key = _digest(token)
        views = self._views.pop(key, None) or ScopedViews(Client.connect(self._as(token)), self._namespaces)
        unused = list(pop_unused(self._views, MOST_USERS - 1))  # before it is among them, and nobody uses it yet
        self._views[key] = views
        async with views.use(request) as view:
            for each in unused:
                await _close(each)
            yield view

    async def close(self) -> None:
        for views in self._views.values():
            await _close(views)

    def _as(self, token: str) -> ClusterConfig:
        """Returns the same cluster for another user, with nothing of who we are ourselves."""
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


async def _close(views: ScopedViews) -> None:
    await views.close()
    await views.client.close()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()

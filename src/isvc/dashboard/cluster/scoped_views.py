"""The views of one user: of all that the cluster says they may read, and of namespaces that they name beyond that.

Somebody who may read one namespace and not list any has to name it, where it is not their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from isvc.dashboard.cluster.scope import Scope, may_read_services, readable_scope
from isvc.dashboard.cluster.view import ClusterView
from isvc.dashboard.cluster.views_in_use import IDLE, ViewInUse, pop_unused
from isvc.kube.selectors import is_label_value
from isvc.toolkit.client import Client

MOST_NAMED: Final = 10


class ScopedViews:
    asks_directly = True

    def __init__(self, client: Client, namespaces: Sequence[str] = (), idle: float | None = IDLE) -> None:
        """Shows `namespaces` and nothing else; without any, the cluster is asked what may be shown."""
        self.client = client
        self._only = Scope(tuple(namespaces), chosen=True) if namespaces else None
        self._found = ViewInUse(self._make, idle)
        self.named: dict[str, ViewInUse] = {}

    def open(self) -> asyncio.Task[ClusterView]:
        """Opens the view before somebody looks."""
        return self._found.open()

    @asynccontextmanager
    async def use(self, request: web.Request) -> AsyncIterator[ClusterView]:
        async with self._found.use() as view:
            named = request.match_info.get("namespace") or request.query.get("namespace", "")
            if not named or view.scope.covers(named) or not await self._may_be_named(named):
                yield view
                return
        async with self.view_of(named) as view:
            yield view

    @property
    def is_unused(self) -> bool:
        return all(view.is_unused for view in (self._found, *self.named.values()))

    async def close(self) -> None:
        for view in (self._found, *self.named.values()):
            await view.close()

    async def _may_be_named(self, namespace: str) -> bool:
        if self._only or not is_label_value(namespace):
            return False
        return namespace in self.named or await may_read_services(self.client, namespace)

    @asynccontextmanager
    async def view_of(self, namespace: str) -> AsyncIterator[ClusterView]:
        view = self.named.pop(namespace, None) or ViewInUse(lambda: self._make_of(Scope((namespace,))))
        unused = list(pop_unused(self.named, MOST_NAMED - 1))  # before it is among them, and nobody uses it yet
        self.named[namespace] = view
        async with view.use() as used:
            for each in unused:
                await each.close()
            yield used

    async def _make(self) -> ClusterView:
        return await self._make_of(self._only or await readable_scope(self.client))

    async def _make_of(self, scope: Scope) -> ClusterView:
        return ClusterView(self.client, scope)

"""Tells Envoy of changes in an order in which no request is lost on the way.

What routes lead to is there before they do, and goes when none does any longer. Changes that come while Envoy takes
earlier ones are sent together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from isvc.local.gateway.backends import Backends, Members, cluster_target
from isvc.local.gateway.endpoints.endpoint import Endpoint
from isvc.local.gateway.envoy.clusters import assignment
from isvc.local.gateway.envoy.messages import Cluster, ClusterLoadAssignment, ScopedRouteConfiguration, encode
from isvc.local.gateway.routes.rules import Rule, Target
from isvc.local.gateway.scopes import Scopes
from isvc.local.gateway.xds import Rejected, XdsServer
from isvc.wire.turns import room_in_turn

log = logging.getLogger("isvc.gateway")

_LONGEST_REST: Final = 0.1  # seconds


class Publisher:
    def __init__(self, backends: Backends, scopes: Scopes, xds: XdsServer) -> None:
        self._backends, self._scopes, self._xds = backends, scopes, xds
        self._pending: set[str] = set()  # scopes that Envoy does not use as they are now
        self._due = asyncio.Event()
        self._asked = 1  # the first configuration
        self._done = 0
        self._due.set()
        self._news = asyncio.Event()
        # Called with those whose endpoints Envoy has now, and those that have none any more, or are gone.
        self.on_endpoints: Callable[[Collection[Target]], None] = lambda targets: None

    def mark_changed(self) -> None:
        """Notes that something has changed that Envoy is to know."""
        self._asked += 1
        self._due.set()

    @property
    def is_behind(self) -> bool:
        """Returns whether there is something that Envoy does not use yet."""
        return self._done < self._asked

    async def wait_until_published(self) -> None:
        """Returns when Envoy uses everything that is known now."""
        wanted = self._asked
        while self._done < wanted:
            await self._news.wait()

    def endpoints(self, cluster: str) -> Collection[Endpoint]:
        """Returns the endpoints of a cluster that take requests, once Envoy has them."""
        is_known = self._xds.is_acknowledged(ClusterLoadAssignment, cluster)
        return self._backends.members(cluster).ready if is_known else ()

    async def next_change(self) -> None:
        """Returns when something has changed, and Envoy uses it."""
        await self._news.wait()

    async def run(self) -> None:
        """Publishes for ever, half of the time at most: what changes meanwhile is sent together."""
        while True:
            await self._due.wait()
            self._due.clear()
            asked, began = self._asked, time.monotonic()
            try:
                await self._publish()
            except Exception:  # of ours, which must not keep later changes from Envoy
                log.exception("changes could not be published")
            self._done = asked
            self._news.set()
            self._news = asyncio.Event()
            await asyncio.sleep(min(_LONGEST_REST, time.monotonic() - began))

    async def _publish(self) -> None:
        """Publishes what has changed."""
        changes = self._backends.update()
        for target in changes.targets:
            self._scopes.target_changed(target)
        # Envoy asks for endpoints as soon as it has a cluster. It makes one anew that is another now, and waits for its
        # endpoints before it goes on, but does not ask for them a second time.
        anew = [name for name in changes.clusters if self._xds.is_acknowledged(Cluster, name)]
        self._put_endpoints({name: self._backends.members(name) for name in anew} | changes.members)
        for name, definition in changes.clusters.items():
            self._xds.put(Cluster, name, encode(Cluster, definition))
        await asyncio.gather(self._send(Cluster, changes.clusters), self._send(ClusterLoadAssignment, anew))
        await self._send_endpoints(changes.members)
        self.on_endpoints({cluster_target(name)[0] for name in (*changes.members, *changes.emptied, *changes.gone)})
        await self._publish_routes()
        self._put_endpoints(changes.emptied)
        await self._send_endpoints(changes.emptied)
        for name in changes.gone:
            self._xds.put(Cluster, name, None)
            self._xds.put(ClusterLoadAssignment, name, None)
        await self._send(Cluster, changes.gone)
        self._xds.forget_gone(ClusterLoadAssignment, changes.gone)  # for which Envoy does not ask any more

    def _put_endpoints(self, members: Mapping[str, Members]) -> None:
        for name, each in members.items():
            message = encode(
                ClusterLoadAssignment, assignment(name, each.ready, each.others, comes_back=each.come_back)
            )
            self._xds.put(ClusterLoadAssignment, name, message)

    async def _send_endpoints(self, names: Iterable[str]) -> None:
        """Sends those of clusters that Envoy has."""
        known = [name for name in names if self._xds.is_acknowledged(Cluster, name)]
        await self._send(ClusterLoadAssignment, known)

    async def _send(self, kind: type[Any], names: Collection[str]) -> None:
        try:
            await self._xds.publish(kind, names)
        except Rejected as error:
            log.error("Envoy does not take the %s %s: %s", kind.DESCRIPTOR.name, ", ".join(names), error)

    # -- routes -------------------------------------------------------------------------------------------------------

    async def _publish_routes(self) -> None:
        if reason := await self._try_routes():
            await self._search(self._scopes.unproven_rules(), reason)

    async def _try_routes(self) -> str:
        """Returns why Envoy does not take the routes as they are now; nothing if it does."""
        self._pending |= await self._scopes.update()
        for name in self._pending:
            await room_in_turn()
            self._xds.put(ScopedRouteConfiguration, name, self._scopes.message(name))
        try:
            await self._xds.publish(ScopedRouteConfiguration, self._pending)
        except Rejected as error:
            return str(error)
        self._pending.clear()
        self._scopes.prove()
        return ""

    async def _search(self, suspects: list[Rule], reason: str) -> None:
        """Finds those among new rules that Envoy does not take, so that all others are served: by halves."""
        self._scopes.withhold(suspects, reason)
        parts = [suspects]
        while parts:
            part = parts.pop()
            self._scopes.release(part)
            if reason := await self._try_routes():
                self._scopes.withhold(part, reason)
                middle = len(part) // 2
                parts += [part[:middle], part[middle:]] if middle else []
        if reason := await self._try_routes():
            log.error("Envoy does not take the routes, and it is none of the new ones: %s", reason)

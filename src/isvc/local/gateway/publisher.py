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
from isvc.local.gateway.envoy.messages import Cluster, ClusterLoadAssignment, RouteConfiguration, encode
from isvc.local.gateway.envoy.types import ROUTES
from isvc.local.gateway.routes.rules import Rule, Target
from isvc.local.gateway.virtual_hosts import VirtualHosts
from isvc.local.gateway.xds import Rejected, XdsServer

log = logging.getLogger("isvc.gateway")

_QUICK: Final = 0.01  # seconds: what takes no longer needs no rest
_REST: Final = 9.0  # times what it took to publish routes beyond that: a push of 800 virtual hosts costs Envoy 40 ms
_LONGEST_REST: Final = 1.0


class Publisher:
    def __init__(self, backends: Backends, virtual_hosts: VirtualHosts, xds: XdsServer) -> None:
        self._backends, self._hosts, self._xds = backends, virtual_hosts, xds
        self._due = asyncio.Event()
        self._asked = 1  # the first configuration
        self._done = 0
        self._due.set()
        self._news = asyncio.Event()
        # Called with those whose endpoints Envoy has now, and those that have none any more, or are gone.
        self.on_endpoints: Callable[[Collection[Target]], None] = lambda targets: None

    def changed(self) -> None:
        """Something that Envoy is to know has changed."""
        self._asked += 1
        self._due.set()

    @property
    def is_behind(self) -> bool:
        """Whether there is something that Envoy does not use yet."""
        return self._done < self._asked

    async def published(self) -> None:
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
        """Publishes for ever; after routes it rests, so that Envoy has time for requests while many are created."""
        while True:
            await self._due.wait()
            self._due.clear()
            asked, began, is_first = self._asked, time.monotonic(), not self._done
            try:
                has_routes = await self._publish()
            except Exception:  # of ours, which must not keep later changes from Envoy
                log.exception("changes could not be published")
                has_routes = True
            self._done = asked
            self._news.set()
            self._news = asyncio.Event()
            if has_routes and not is_first:  # that took as long as Envoy took to start
                await asyncio.sleep(min(_LONGEST_REST, _REST * max(0.0, time.monotonic() - began - _QUICK)))

    async def _publish(self) -> bool:
        """Publishes what has changed; returns whether that were routes, of which Envoy gets all."""
        changes = self._backends.update()
        for target in changes.targets:
            self._hosts.target_changed(target)
        self._put_endpoints(changes.members)  # for which Envoy asks as soon as it has a cluster
        for name, definition in changes.clusters.items():
            self._xds.put(Cluster, name, encode(Cluster, definition))
        await self._send(Cluster, changes.clusters)
        await self._send_endpoints(changes.members)
        self.on_endpoints({cluster_target(name)[0] for name in (*changes.members, *changes.emptied, *changes.gone)})
        has_routes = await self._hosts.update()
        if has_routes:
            await self._publish_routes()
        self._put_endpoints(changes.emptied)
        await self._send_endpoints(changes.emptied)
        for name in changes.gone:
            self._xds.put(Cluster, name, None)
            self._xds.put(ClusterLoadAssignment, name, None)
        await self._send(Cluster, changes.gone)
        return has_routes

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
        reason = await self._try_routes()
        if reason is None:
            self._hosts.prove()
        else:
            await self._search(self._hosts.unproven(), reason)

    async def _try_routes(self) -> str | None:
        """Returns why Envoy does not take the routes as they are now."""
        self._xds.put(RouteConfiguration, ROUTES, self._hosts.message())
        try:
            await self._xds.publish(RouteConfiguration, [ROUTES])
        except Rejected as error:
            return str(error)
        return None

    async def _search(self, suspects: list[Rule], reason: str) -> None:
        """Finds those among new rules that Envoy does not take, so that all others are served: by halves."""
        self._hosts.withhold(suspects, reason)
        parts = [suspects]
        while parts:
            part = parts.pop()
            self._hosts.release(part)
            await self._hosts.update()
            if reason := await self._try_routes() or "":
                self._hosts.withhold(part, reason)
                middle = len(part) // 2
                parts += [part[:middle], part[middle:]] if middle else []
        await self._hosts.update()
        if reason := await self._try_routes() or "":
            log.error("Envoy does not take the routes, and it is none of the new ones: %s", reason)

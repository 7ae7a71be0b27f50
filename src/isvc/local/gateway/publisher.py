"""Tells Envoy of changes in an order in which no request is lost on the way.

What routes lead to is there before they do, and goes when none does any longer. Changes that come while Envoy takes
earlier ones are sent together.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from isvc.kube.objects import Key
from isvc.local.gateway.backends import Backends, Members, cluster_target
from isvc.local.gateway.discovery import Discovery, Rejected
from isvc.local.gateway.envoy.clusters import assignment
from isvc.local.gateway.envoy.messages import Cluster, ClusterLoadAssignment, RouteConfiguration, encode
from isvc.local.gateway.envoy.types import ROUTES, Json
from isvc.local.gateway.routes.rules import Rule
from isvc.local.gateway.virtual_hosts import VirtualHosts

log = logging.getLogger("isvc.gateway")


class Publisher:
    def __init__(self, backends: Backends, virtual_hosts: VirtualHosts, discovery: Discovery) -> None:
        self._backends, self._hosts, self._discovery = backends, virtual_hosts, discovery
        self._due = asyncio.Event()
        self._asked = 1  # the first configuration
        self._done = 0
        self._due.set()
        self._news = asyncio.Event()
        self.on_endpoints: Callable[[Collection[Key]], None] = lambda services: (
            None
        )  # of Services whose endpoints Envoy has now

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

    async def next_change(self) -> None:
        """Returns when something has changed, and Envoy uses it."""
        await self._news.wait()

    async def run(self) -> None:
        """Publishes for ever."""
        while True:
            await self._due.wait()
            self._due.clear()
            asked = self._asked
            await self._publish()
            self._done = asked
            self._news.set()
            self._news = asyncio.Event()

    async def _publish(self) -> None:
        changes = self._backends.update()
        for key in {target.key for target in changes.services}:
            self._hosts.service_changed(key)
        for target in changes.targets:
            self._hosts.target_changed(target)
        await self._publish_clusters(changes.clusters, changes.members)
        self.on_endpoints({cluster_target(name)[0].key for name in changes.members})
        if self._hosts.update():
            await self._publish_routes()
        await self._publish_members(changes.emptied)
        for name in changes.gone:
            self._discovery.put(Cluster, name, None)
            self._discovery.put(ClusterLoadAssignment, name, None)
        await self._discovery.publish(Cluster, changes.gone)

    async def _publish_clusters(self, clusters: Mapping[str, Json], members: Mapping[str, Members]) -> None:
        for name, definition in clusters.items():
            self._discovery.put(Cluster, name, encode(Cluster, definition))
        self._put_members(members)
        try:
            await self._discovery.publish(Cluster, clusters.keys())
        except Rejected as error:
            log.error("Envoy does not take the clusters %s: %s", ", ".join(clusters), error)
        await self._discovery.publish(ClusterLoadAssignment, self._acknowledged(members))

    async def _publish_members(self, members: Mapping[str, Members]) -> None:
        self._put_members(members)
        await self._discovery.publish(ClusterLoadAssignment, self._acknowledged(members))

    def _put_members(self, members: Mapping[str, Members]) -> None:
        for name, each in members.items():
            message = encode(ClusterLoadAssignment, assignment(name, each.ready, each.others))
            self._discovery.put(ClusterLoadAssignment, name, message)

    def _acknowledged(self, names: Mapping[str, Members]) -> list[str]:
        return [name for name in names if self._discovery.is_acknowledged(Cluster, name)]

    # -- routes -------------------------------------------------------------------------------------------------------

    async def _publish_routes(self) -> None:
        reason = await self._try_routes()
        if reason is None:
            self._hosts.prove()
        else:
            await self._search(self._hosts.unproven(), reason)

    async def _try_routes(self) -> str | None:
        """Returns why Envoy does not take the routes as they are now."""
        self._discovery.put(RouteConfiguration, ROUTES, self._hosts.message())
        try:
            await self._discovery.publish(RouteConfiguration, [ROUTES])
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
            self._hosts.update()
            reason = await self._try_routes() or ""
            if reason:
                self._hosts.withhold(part, reason)
                middle = len(part) // 2
                parts += [part[:middle], part[middle:]] if middle else []
        self._hosts.update()
        if reason := await self._try_routes() or "":
            log.error("Envoy does not take the routes, and it is none of the new ones: %s", reason)

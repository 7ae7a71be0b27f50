"""Everything `isvc up` runs, started in the right order and stopped in the reverse.

The API server is a process of its own; manager, controllers, node and gateway share this one. Imports are made while
the API server starts, on another core.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from isvc.insight.operations import NotPossible
from isvc.local.api_server import ApiServer
from isvc.local.child import Child
from isvc.local.choices import Choices
from isvc.local.home import Home, HomeGone, Running
from isvc.local.node.pods.ports import Ports, is_free
from isvc.local.node.processes.process import Reaper
from isvc.local.node.programs.warm import WarmServers
from isvc.toolkit.tasks import cancel

if TYPE_CHECKING:
    from isvc.kube.objects import Object
    from isvc.local.causes import Causes
    from isvc.local.node.node import Node
    from isvc.programs.program import Program
    from isvc.toolkit.client import Client
    from isvc.toolkit.manager import Manager

log = logging.getLogger("isvc.up")

API_PORT = 6443
GATEWAY_PORT = 8080
GATEWAY_TLS_PORT = 8443
_LOOK_AT_HOME = 2.0


class PortBusy(NotPossible):
    """A port that was asked for by number is in use."""


Progress = Callable[[str, float], None]


class Stack:
    def __init__(self, home: Home, choices: Choices, progress: Progress) -> None:
        self.home = home
        self._choices = choices
        self._progress = progress
        self._reaper = Reaper(home.processes)
        self._api_server = ApiServer(home, self._reaper)
        self._stack = contextlib.AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._managers: list[Manager] = []
        self._children: list[Child] = [self._api_server]
        self.client: Client  # when it has started
        self.causes: Causes  # likewise
        self.node: Node
        self._began = self._mark = time.perf_counter()

    async def start(self, dashboard: str = "") -> Running:
        """`dashboard` is where one will be."""
        strays = self._reaper.kill_strays()
        if strays:
            log.info("ended %d processes of an earlier start", len(strays))
        self._reaper.start()
        self._stack.push_async_callback(asyncio.to_thread, self._reaper.stop)
        spare = Ports()
        api_port = port_or_free(self._choices.api_port, API_PORT, spare)
        gateway_port = port_or_free(self._choices.gateway_port, GATEWAY_PORT, spare)
        any_port = 0 if self._choices.gateway_port == 0 else None
        tls_port = port_or_free(any_port, GATEWAY_TLS_PORT, spare) if self._choices.tls else None
        pods_port = spare.one()
        self._api_server.spawn(api_port, ephemeral=self._choices.ephemeral, durable=self._choices.durable)
        self._stack.push_async_callback(self._api_server.stop)
        warm = WarmServers(self._reaper)
        self._stack.push_async_callback(warm.close)
        if self._choices.warm_up:
            await warm.prepare()
        from isvc.local import install, parts  # imports nearly everything, while the API server starts
        from isvc.programs.cluster_manifests import PROGRAMS

        self._report_progress("programs")
        await self._api_server.wait_until_ready()
        self._report_progress("API server")
        self.client = client = await self._stack.enter_async_context(parts.connect(self.home))
        authority = (self.home.pki / "ca.crt").read_bytes()
        ports = self._webhook_ports(PROGRAMS, spare)
        local_ports = parts.Ports(gateway_port, pods_port, tls_port)
        local = parts.Local(client, self.home, self._reaper, warm, local_ports, self._choices)
        self._stack.push_async_callback(local.stop)
        await local.start()  # Envoy starts on another core, while this one installs
        await install.install(client, gateway_port, install.conversions(ports, authority))
        self._report_progress("kinds, runtimes, configuration")
        self.causes, self.node = local.causes, local.node
        self._children.append(local.gateway.envoy.child)
        local.gateway.envoy.child.on_restart = self._report_restart
        self._managers = [
            parts.manager(program, local.cache, client.config, port, self.home.pki) for program, port in ports.items()
        ]
        self._managers.append(parts.model_keeper(local.cache, client.config, self.home))
        self._run_managers(local.manager)
        await self._unless_broken(parts.wait_until_ready(*self._managers, local.manager))
        local.returning.begin()
        self._report_progress("controllers, node")
        webhooks = install.install_webhooks(client, ports, authority)
        await self._unless_broken(asyncio.gather(local.gateway.wait_until_live(), webhooks))
        self._report_progress("gateway, webhooks")
        warming = asyncio.create_task(parts.warm_up(client))
        self._stack.push_async_callback(_finish, warming)
        running = replace(self._describe_running(client, gateway_port, tls_port), dashboard=dashboard)
        self.home.report(running)
        local.open()
        return running

    def _webhook_ports(self, programs: Iterable[Program], spare: Ports) -> dict[Program, int]:
        """Returns those of the last start, if they are free: CRDs name them, and changing a large CRD takes a while."""
        last = self.home.webhook_ports()
        ports = {
            program: port if (port := last.get(program.name, 0)) and is_free(port) else spare.one()
            for program in programs
        }
        self.home.keep_webhook_ports({program.name: port for program, port in ports.items()})
        return ports

    def _run_managers(self, local: Manager) -> None:
        for manager in self._managers:
            self._stack.push_async_callback(manager.client.close)
        for each in (*self._managers, local):
            task = asyncio.create_task(each.run(handle_signals=False))
            self._tasks.append(task)
            self._stack.push_async_callback(_finish, task)
            self._stack.callback(each.stop)

    def follow(self, handler: Callable[[Object | None, Object | None], None]) -> None:
        """Calls the handler with each service that is there, of whatever kind, and with every change."""
        from isvc.api.kinds import SERVICES

        for row in SERVICES:
            self._managers[0].cache.subscribe(row.resource, handler)

    def count_objects(self) -> int:
        """Returns how many objects of the API all parts know, which share a cache."""
        return self._managers[0].cache.count()

    def on_stop(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Calls it before everything else is stopped."""
        self._stack.push_async_callback(callback)

    async def run(self) -> None:
        """Runs until something that should run for ever has ended, or the home is gone; raises why."""
        await self._unless_broken(self._keep_home())

    async def _keep_home(self) -> None:
        """Raises HomeGone when somebody has removed or moved it: no command would find us any more."""
        while self.home.holder() == os.getpid():  # noqa: ASYNC110 - a file, and no other way to wait for its end
            await asyncio.sleep(_LOOK_AT_HOME)
        raise HomeGone(f"{self.home.root} is gone")

    async def _unless_broken(self, step: Awaitable[object]) -> None:
        work = asyncio.ensure_future(step)
        watches = [asyncio.create_task(each.keep_running()) for each in self._children]
        try:
            done, _ = await asyncio.wait((work, *watches, *self._tasks), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            await cancel(work, *watches)

    async def stop(self) -> None:
        await self._stack.aclose()

    def _describe_running(self, client: Client, gateway_port: int, tls_port: int | None) -> Running:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        gateway, tls = f"http://localhost:{gateway_port}", f"https://localhost:{tls_port}" if tls_port else ""
        return Running(os.getpid(), client.config.server, gateway, str(self.home.kubeconfig), now, gateway_tls=tls)

    def _report_restart(self) -> None:
        if (running := self.home.find_running()) is not None:
            now = datetime.now(UTC).isoformat(timespec="seconds")
            times = running.gateway_restarts + 1
            with contextlib.suppress(OSError):  # a full disk, on which it serves all the same
                self.home.report(replace(running, gateway_restarts=times, gateway_restarted=now))

    def _report_progress(self, part: str) -> None:
        now = time.perf_counter()
        self._progress(part, now - self._mark)
        self._mark = now

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began


async def _finish(task: asyncio.Task[None]) -> None:
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await asyncio.wait_for(task, 10)


def port_or_free(wanted: int | None, default: int, spare: Ports) -> int:
    """Returns the port, if it is free; another one in place of a default that is taken, or if 0 asks for any."""
    if wanted == 0 or (wanted is None and not is_free(default)):
        return spare.one()
    port = default if wanted is None else wanted
    if not is_free(port):
        raise PortBusy(f"cannot use port {port}: another program listens there")
    return port

"""Managers that run in this process, and the controllers of a program without its webhooks, lease and flags."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tests.definitions import PATIENCE
from tests.waiting import until

from isvc.programs.program import Program
from isvc.serving.environment import Environment
from isvc.toolkit.cache import Cache
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.context import Context
from isvc.toolkit.manager import Manager
from isvc.toolkit.recorder import Recorder

SYSTEM = "kserve"


@contextlib.asynccontextmanager
async def controllers(client: Client, program: Program, system_namespace: str = SYSTEM) -> AsyncIterator[None]:
    cache, clock = Cache(client), SystemClock()
    recorder = Recorder(client, "test", clock)
    context, environment = Context(client, cache, recorder, clock), Environment(system_namespace=system_namespace)
    made = [make(context, environment) for make in program.controllers]
    manager = Manager(client, cache, controllers=made, services=[recorder])
    async with running_manager(manager):
        yield


@contextlib.asynccontextmanager
async def running_manager(manager: Manager) -> AsyncIterator[None]:
    task = asyncio.create_task(manager.run(handle_signals=False))
    try:
        await until(lambda: task.done() or manager.ready, "the controllers are ready", PATIENCE)
        yield
    finally:
        manager.stop()
        await task

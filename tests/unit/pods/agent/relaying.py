"""An agent's relay within the test: its port, and what its logger was given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from isvc.pods.agent.batcher import Batcher
from isvc.pods.agent.cloudevents import Event
from isvc.pods.agent.logger import Ledger, Logger
from isvc.pods.agent.model_server import ModelServer
from isvc.pods.agent.peer import Peer
from isvc.pods.agent.probe import Readiness
from isvc.pods.agent.relay import Relay, Settings


@dataclass
class Kept:
    """A sink that keeps everything, and lets go of it."""

    ledger: Ledger
    events: list[Event] = field(default_factory=list)

    def put(self, event: Event) -> bool:
        self.events.append(event)
        self.ledger.release(len(event.payload))
        return True

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@dataclass
class Agent:
    port: int
    kept: Kept
    relays: list[Relay] = field(default_factory=list)

    def has_lost_its_server(self) -> bool:
        """Whether the last connection's server has closed its end."""
        server = self.relays[-1]._server
        return server is not None and server.ended

    def holds_its_server_up(self) -> bool:
        """Whether the last connection's server may send no more for now."""
        server = self.relays[-1]._server
        return server is not None and server._held

    def piled_up(self) -> int:
        """Bytes that the last connection holds of what its server sent."""
        relay = self.relays[-1]
        assert relay._server is not None
        return relay._server.waiting + relay._client._transport.get_write_buffer_size()

    @property
    def ledger(self) -> Ledger:
        return self.kept.ledger


@asynccontextmanager
async def relaying(
    component: int, *, logs: bool = False, batches: int = 0, room: int = 1 << 20
) -> AsyncIterator[Agent]:
    loop = asyncio.get_running_loop()
    kept = Kept(Ledger(room))
    server = ModelServer(component)
    settings = Settings(
        component,
        Readiness("", {}),
        Batcher(server, batches, 0.05) if batches else None,
        Logger(kept, kept.ledger, "all", ["X-User"]) if logs else None,
    )
    tasks: set[asyncio.Task[None]] = set()

    def begin(client: Peer) -> None:
        agent.relays.append(Relay(settings, client))
        task = loop.create_task(agent.relays[-1].serve())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    listener = await loop.create_server(lambda: Peer(begin), "127.0.0.1", 0)
    agent = Agent(listener.sockets[0].getsockname()[1], kept)
    try:
        yield agent
    finally:
        listener.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.close()


@asynccontextmanager
async def listening(handle: object) -> AsyncIterator[int]:
    """A server of plain bytes: `handle` gets a reader and a writer for each connection."""
    server = await asyncio.start_server(handle, "127.0.0.1", 0)  # type: ignore[arg-type]
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()

"""What the worker of a pod needs of its node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from isvc.local.node.containers.sandbox import Sandbox
from isvc.local.node.pods.ports import Ports
from isvc.local.node.processes.process import Reaper
from isvc.local.node.programs.images import ImageTable
from isvc.local.node.programs.warm import WarmServers
from isvc.toolkit.client import Client
from isvc.toolkit.clock import Clock
from isvc.toolkit.recorder import Recorder

Drain = Callable[[list[int], float], Awaitable[None]]  # local ports, at most so many seconds


@dataclass(frozen=True, slots=True)
class NodeServices:
    """What a worker needs of its node."""

    name: str
    home: Path
    client: Client
    clock: Clock
    recorder: Recorder
    images: ImageTable
    reaper: Reaper
    warm: WarmServers
    ports: Ports
    env: Mapping[str, str]
    drain: Drain
    opened: asyncio.Event  # processes may be started
    filling: dict[Path, asyncio.Task[None]] = field(default_factory=dict)  # what brings files into a claim's folder
    simulate: bool = False
    sandbox: Sandbox | None = None

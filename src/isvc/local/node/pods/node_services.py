"""What the worker of a pod needs of its node."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from isvc.local.node.containers.launch import ContainerServices
from isvc.local.node.pods.ports import Ports
from isvc.toolkit.client import Client
from isvc.toolkit.recorder import Recorder

Drain = Callable[[list[int], float], Awaitable[None]]  # local ports, at most so many seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeServices(ContainerServices):
    """What a worker needs of its node, beside what its containers do."""

    name: str
    home: Path
    client: Client
    recorder: Recorder
    ports: Ports
    drain: Drain
    opened: asyncio.Event  # processes may be started
    filling: dict[Path, asyncio.Task[None]] = field(default_factory=dict)  # what brings files into a claim's folder
    simulate: bool = False

    @property
    def pods(self) -> Path:
        """Where each pod has a folder, by its uid."""
        return self.home / "pods"

    @property
    def claims(self) -> Path:
        """Where the folders of claims are, each below its namespace."""
        return self.home / "volumes"

    @property
    def disk(self) -> Path:
        """The root of paths that PersistentVolumes name."""
        return self.home / "disk"

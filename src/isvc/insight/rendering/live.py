"""A cluster's objects in a simulation: what controllers would see there, read with GET and LIST alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from isvc.insight.simulation.clock import SimulatedClock
from isvc.insight.simulation.simulation import Simulation
from isvc.kube.errors import Forbidden, NotFound
from isvc.kube.objects import Object
from isvc.kube.resource import CLUSTER_ROLE_BINDINGS, PODS, ROLE_BINDINGS, ROLES, SECRETS, SERVICE_ACCOUNTS, Resource
from isvc.programs.options import Options
from isvc.serving.thirdparty import GATEWAYS
from isvc.toolkit.client import Client
from isvc.toolkit.clock import SystemClock
from isvc.toolkit.reads import Read, widest

#: Kinds that people often may not list; their children are then left out.
_GUARDED: Final = frozenset({SECRETS, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS})
_AT_ONCE: Final = 8


class LiveCluster(NamedTuple):
    """`unseen` are the kinds that the caller may not list."""

    simulation: Simulation
    unseen: frozenset[Resource]


async def load_cluster(
    client: Client,
    options: Options,
    *,
    namespaces: frozenset[str] | None = None,
    warn: Callable[[str], None] = lambda warning: None,
) -> LiveCluster:
    """Returns the cluster as a simulation; of some namespaces and the system's, if they are given."""
    clock = SimulatedClock(SystemClock().now())
    version = await client.server_version()
    declared = Simulation(options=options).reads
    selections = _selections(declared, options.system_namespace, namespaces)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def list_objects(read: Read) -> list[Object] | Exception:
        async with slots:
            try:
                found = await client.list(read.resource, read.namespace, labels=read.labels, fields=read.fields)
            except (NotFound, Forbidden) as error:
                return error
            return found.items

    answers = list(zip(selections, await asyncio.gather(*map(list_objects, selections)), strict=True))
    absent = {read.resource for read, answer in answers if isinstance(answer, NotFound)}
    simulation = Simulation(absent=absent, options=options, clock=clock, version=version, warn=warn)
    simulation.server.upstream = client
    unseen: set[Resource] = set()
    for read, answer in answers:
        if isinstance(answer, Forbidden):
            if read.resource not in _GUARDED:
                raise answer
            unseen.add(read.resource)
            warn(f"{read.resource} cannot be listed: what would change in them is left out")
        elif isinstance(answer, list):
            simulation.seed((read.resource, obj) for obj in answer)
    return LiveCluster(simulation, frozenset(unseen))


def _selections(reads: Iterable[Read], system: str, namespaces: frozenset[str] | None) -> list[Read]:
    """Returns what to list: each kind once, unless its parts are smaller."""
    kinds: dict[Resource, list[Read]] = {}
    for read in reads:
        if read.resource != PODS:  # they decide on the status alone
            kinds.setdefault(read.resource, []).append(read)
    return [part for kind in kinds.values() for read in widest(kind) for part in _parts(read, system, namespaces)]


def _parts(read: Read, system: str, namespaces: frozenset[str] | None) -> Iterable[Read]:
    if namespaces is None or read.namespace or not read.resource.namespaced or read.resource == GATEWAYS:
        return [read]
    return [
        Read(read.resource, namespace=namespace, labels=read.labels, fields=read.fields)
        for namespace in sorted(namespaces | {system})
    ]

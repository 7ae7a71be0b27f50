"""What a shell completes besides commands and options: the names of services, namespaces and contexts.

A shell asks while somebody types, so there is little time, and nowhere to complain: what cannot be had is not offered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import click

from isvc.cli.cluster import Cluster

if TYPE_CHECKING:
    from isvc.toolkit.client import Client

PATIENCE: Final = 3.0  # seconds


def complete_services(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completes names of services, or KIND/NAME once there is a slash."""
    cluster = _cluster(ctx)

    async def list_names(client: Client) -> list[str]:
        from isvc.insight.operations import kinds
        from isvc.kube.objects import name_of

        kind, slash, _ = incomplete.rpartition("/")
        resource = kinds.resource_called(kind) if slash else None
        found = await kinds.list_all(client, cluster.scope(client), (resource,) if resource else ())
        return [f"{kind}{slash}{name_of(each)}" for each in found]

    return _complete(cluster, list_names, incomplete)


def complete_namespaces(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    async def list_names(client: Client) -> list[str]:
        from isvc.kube.objects import name_of
        from isvc.kube.resource import NAMESPACES

        return [name_of(each) for each in (await client.list(NAMESPACES)).items]

    return _complete(_cluster(ctx), list_names, incomplete)


def _cluster(ctx: click.Context) -> Cluster:
    given = {key: ctx.params.get(key) or "" for key in ("kubeconfig", "context", "namespace")}
    return Cluster(**given, all_namespaces=bool(ctx.params.get("all_namespaces")))


def _complete(cluster: Cluster, work: Callable[[Client], Awaitable[list[str]]], incomplete: str) -> list[str]:
    from isvc.cli.failures import describe_error

    async def in_time(client: Client) -> list[str]:
        async with asyncio.timeout(PATIENCE):
            return await work(client)

    try:
        found = cluster.run(in_time)
    except Exception as error:
        if isinstance(error, TimeoutError) or describe_error(error):
            return []
        raise
    return sorted({name for name in found if name.startswith(incomplete)})

"""Which namespaces a user may read services in. The cluster is asked, so that nobody has to know it beforehand."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from isvc.insight.operations import kinds
from isvc.kube.errors import ApiError, Forbidden
from isvc.kube.objects import name_of
from isvc.kube.resource import NAMESPACES
from isvc.toolkit.client import Client
from isvc.toolkit.client.self_review import may, own_name

MOST_NAMESPACES: Final = 20  # each has a watch for every kind
AT_ONCE: Final = 16  # questions
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Scope:
    """`namespaces` is None for the whole cluster; `more` are further ones that the user may read, too.

    They are `chosen` if a flag says so, and otherwise what the user may read.
    """

    namespaces: tuple[str, ...] | None = None
    more: tuple[str, ...] = ()
    chosen: bool = False

    @property
    def is_limited(self) -> bool:
        """Returns whether there may be services elsewhere, which are shown if their namespace is named."""
        return self.namespaces is not None and not self.chosen

    def covers(self, namespace: str) -> bool:
        return self.namespaces is None or namespace in self.namespaces


EVERYTHING: Final = Scope()


async def readable_scope(client: Client) -> Scope:
    """Returns the whole cluster if the user may list services of a kind there, else the namespaces where that is so."""
    if await may_read_services(client):
        return EVERYTHING
    slots = asyncio.Semaphore(AT_ONCE)

    async def is_readable(namespace: str) -> bool:
        async with slots:
            return await may_read_services(client, namespace)

    candidates = await _candidates(client)
    answers = await asyncio.gather(*map(is_readable, candidates))
    found = tuple(each for each, yes in zip(candidates, answers, strict=True) if yes)
    return Scope(found[:MOST_NAMESPACES], found[MOST_NAMESPACES:])


async def may_read_services(client: Client, namespace: str = "") -> bool:
    """Returns whether services of any kind may be listed in a namespace; without one, in all of them."""
    answers = await asyncio.gather(*(may(client, "list", kind.group, kind.plural, namespace) for kind in kinds.ALL))
    return any(answers)


async def _candidates(client: Client) -> list[str]:
    """Returns all namespaces; for a user who may not list them, the context's and the user's own."""
    try:
        return sorted(map(name_of, (await client.list(NAMESPACES)).items))
    except Forbidden:
        return sorted({client.config.namespace, *await _own_namespace(client)} - {""})


async def _own_namespace(client: Client) -> list[str]:
    """Returns the namespace of the service account that the user is, if it is one."""
    try:
        name = await own_name(client)
    except ApiError:
        return []
    return [name.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]] if name.startswith(_SERVICE_ACCOUNT) else []

"""Why a service does not answer: services that have no route yet are known by the addresses that they will have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Protocol

from isvc.api.kinds import SERVICES
from isvc.kube.errors import ApiError
from isvc.kube.objects import Key, Object, dig, name_of, namespace_of
from isvc.kube.readiness import is_ready
from isvc.kube.resource import Resource
from isvc.local.gateway.names import is_this_machine
from isvc.local.status_printer import Describe
from isvc.toolkit.cache import Reader
from isvc.toolkit.failure import ClusterError
from isvc.toolkit.reads import Read

ADDRESS_OF_SERVICE: Final = "address"
_PATH: Final = re.compile(r"(?:/serving)?/[a-z0-9.-]+/[a-z0-9.-]+")


def addresses(service: Object) -> Iterable[str]:
    """Returns the index under which services are found: the hosts and paths of a laptop's configuration."""
    name, namespace = name_of(service), namespace_of(service)
    return [f"{name}-{namespace}.localhost", f"/serving/{namespace}/{name}", f"/{namespace}/{name}"]


_KINDS: Final = tuple(row.resource for row in SERVICES)
READS: Final = tuple(Read(kind, indexers={ADDRESS_OF_SERVICE: addresses}) for kind in _KINDS)


class Getter(Protocol):
    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...


async def why_unready(
    api: Getter, reader: Reader, describe: Describe, host: str, path: str, *, has_waited: bool = False
) -> str | None:
    """Returns what keeps the service behind an address from answering, in one sentence.

    That is nothing if the service is ready there, and None for an address of no service. The API server is asked, since
    clients may have heard from it what the cache has not. A service is ready while it wakes: where a request
    `has_waited` for a pod, and none came, it is said why.
    """
    below = _PATH.match(path)
    wanted = [host, *([below[0]] if below and is_this_machine(host) else [])]
    found = None
    for kind, address in ((kind, address) for kind in _KINDS for address in wanted):
        for cached in reader.by_index(kind, ADDRESS_OF_SERVICE, address):
            service = await _latest(api, kind, cached)
            if has_waited or not is_ready(service):
                return f"{kind.kind} {Key.of(service)} {await describe(service)}"
            url = str(dig(service, "status", "url") or "")
            if any(each in url for each in addresses(service)):  # else it is of the cluster alone
                found = ""
    return found


async def _latest(api: Getter, kind: Resource, cached: Object) -> Object:
    try:
        return await api.get(kind, name_of(cached), namespace_of(cached))
    except (ApiError, ClusterError):
        return cached

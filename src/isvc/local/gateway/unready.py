"""Why a service does not answer: services that have no route yet are known by the addresses that they will have."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Protocol

from isvc.api.kinds import SERVICES
from isvc.kube.objects import Key, Object, name_of, namespace_of
from isvc.kube.readiness import is_ready
from isvc.kube.resource import Resource
from isvc.local.gateway.names import is_this_machine
from isvc.local.status_printer import Describe
from isvc.toolkit.reads import Read

ADDRESS_OF_SERVICE: Final = "address"
_PATH: Final = re.compile(r"(?:/serving)?/[a-z0-9.-]+/[a-z0-9.-]+")


def addresses(service: Object) -> Iterable[str]:
    """The index under which services are found: the hosts and paths of a laptop's configuration."""
    name, namespace = name_of(service), namespace_of(service)
    return [f"{name}-{namespace}.localhost", f"/serving/{namespace}/{name}", f"/{namespace}/{name}"]


_KINDS: Final = tuple(row.resource for row in SERVICES)
READS: Final = tuple(Read(kind, indexers={ADDRESS_OF_SERVICE: addresses}) for kind in _KINDS)


class Reader(Protocol):
    def by_index(self, resource: Resource, index_name: str, value: str) -> list[Object]: ...


async def why_unready(reader: Reader, describe: Describe, host: str, path: str) -> str | None:
    """What keeps the service behind an address from answering, in one sentence; None for no service, or a ready one."""
    below = _PATH.match(path)
    wanted = [host, *([below[0]] if below and is_this_machine(host) else [])]
    for kind, address in ((kind, address) for kind in _KINDS for address in wanted):
        for service in reader.by_index(kind, ADDRESS_OF_SERVICE, address):
            if not is_ready(service):
                return f"{kind.kind} {Key.of(service)} {await describe(service)}"
    return None

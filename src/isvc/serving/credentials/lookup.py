"""What has been read of one namespace's service accounts and secrets.

Which secrets matter shows only while credentials are worked out: the service account names them, or the pod does. So
the work is done on what is known, and `NotLookedUp` says what is missing; `with_lookups` reads that and starts over.
This keeps the decisions pure and in one place, and no secret is read that is not needed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from isvc.kube.objects import Object, name_of
from isvc.kube.resource import SECRETS, SERVICE_ACCOUNTS, Resource
from isvc.serving.refused import Refused

T = TypeVar("T")


class NotLookedUp(Exception):
    """These objects have to be read before the answer is known."""

    def __init__(self, resource: Resource, names: tuple[str, ...]) -> None:
        super().__init__(f"not looked up: {resource.plural} {', '.join(names)}")
        self.resource = resource
        self.names = names


@dataclass(frozen=True, slots=True)
class Lookup:
    """By name, each object that was read; None for one that does not exist."""

    namespace: str
    service_accounts: Mapping[str, Object | None] = field(default_factory=dict)
    secrets: Mapping[str, Object | None] = field(default_factory=dict)

    def service_account(self, name: str) -> Object | None:
        if name not in self.service_accounts:
            raise NotLookedUp(SERVICE_ACCOUNTS, (name,))
        return self.service_accounts[name]

    def secret(self, name: str) -> Object | None:
        self.expect_secrets([name])
        return self.secrets[name]

    def expect_secrets(self, names: Iterable[str]) -> None:
        """Ask for several secrets at once, so that they can be read side by side."""
        missing = tuple(dict.fromkeys(name for name in names if name not in self.secrets))
        if missing:
            raise NotLookedUp(SECRETS, missing)

    def knowing(self, resource: Resource, found: Mapping[str, Object | None]) -> Lookup:
        """The same, and these objects too."""
        if resource == SERVICE_ACCOUNTS:
            return replace(self, service_accounts={**self.service_accounts, **found})
        return replace(self, secrets={**self.secrets, **found})


Read: TypeAlias = Callable[[Resource, tuple[str, ...]], Awaitable[Mapping[str, Object | None]]]


async def with_lookups(decide: Callable[[Lookup], T], lookup: Lookup, read: Read) -> T:
    """What is decided once everything is known: whatever `decide` misses is read, and it starts over."""
    while True:
        try:
            return decide(lookup)
        except NotLookedUp as missing:
            lookup = lookup.knowing(missing.resource, await read(missing.resource, missing.names))


def secret_value(secret: Object, key: str) -> str | None:
    """A value of a secret as text; None when the secret has no such key."""
    encoded = (secret.get("data") or {}).get(key)
    if encoded is None:
        return None
    try:
        return base64.b64decode(encoded).decode("utf-8", "replace")
    except binascii.Error:
        raise Refused(f'secret "{name_of(secret)}": the value of {key} is not base64') from None

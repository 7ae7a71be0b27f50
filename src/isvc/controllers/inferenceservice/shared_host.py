"""Two services with one host: `{{ .Name }}-{{ .Namespace }}` makes the same of `a-b` in `c` and of `a` in `b-c`.

Which of them a request reaches is up to the ingress. The younger one says so in a condition that affects no readiness.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from isvc.kube.objects import Key, Object, dig, uid_of

CONDITION: Final = "HostUnique"
REASON: Final = "HostConflict"
REMEDY: Final = "rename one of them, or make ingress.domainTemplate keep name and namespace apart"


def place_of(service: Object) -> str:
    """Returns host and path of the URL that a service reports; "" as long as it has none."""
    return str(dig(service, "status", "url") or "").partition("://")[2].removesuffix("/")


def places_of(service: Object) -> Iterable[str]:
    return (place,) if (place := place_of(service)) else ()


def elder_of(service: Object, others: Iterable[Object]) -> Key | None:
    """Returns the oldest of the services at one place, unless that is this one."""
    oldest = min((service, *others), key=_seniority)
    return None if oldest is service else Key.of(oldest)


def describe(place: str, elder: Key) -> str:
    """Returns what is said of a service whose place an older one has, too."""
    return f"InferenceService {elder}, which is older, has the address {place}, too: requests may reach either"


def _seniority(service: Object) -> tuple[str, str]:
    return str(dig(service, "metadata", "creationTimestamp") or ""), uid_of(service)

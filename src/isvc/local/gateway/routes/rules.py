"""What routes say, as values: which requests a rule is for, what it changes, where they go, how often and how long."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

from isvc.kube.resource import Resource


class PathKind(IntEnum):
    """In order of precedence. A literal prefix ends anywhere, a prefix only between two parts of a path."""

    EXACT = 0
    PREFIX = 1
    LITERAL_PREFIX = 2
    REGEX = 3


class Comparison(Enum):
    EXACT = "exact"
    PREFIX = "prefix"
    REGEX = "regex"  # of the whole value
    PRESENT = "present"


@dataclass(frozen=True, slots=True)
class Condition:
    """A header or query parameter that has to have a value, or must not."""

    name: str
    comparison: Comparison
    value: str = ""
    must_not: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    kind: PathKind = PathKind.PREFIX
    path: str = "/"
    method: str = ""
    headers: tuple[Condition, ...] = ()
    query: tuple[Condition, ...] = ()

    @property
    def rank(self) -> tuple[int, ...]:
        length = len(self.stem if self.kind is PathKind.PREFIX else self.path)
        return (self.kind, -length, 0 if self.method else 1, -len(self.headers), -len(self.query))

    @property
    def stem(self) -> str:
        return self.path.rstrip("/")

    @property
    def is_any_path(self) -> bool:
        return self.kind in (PathKind.PREFIX, PathKind.LITERAL_PREFIX) and not self.stem


@dataclass(frozen=True, slots=True)
class PathRewrite:
    """Another path in place of the whole, of the prefix that a rule matched, or of what an expression finds."""

    full: str | None = None
    prefix: str | None = None
    found: tuple[str, str] | None = None  # an expression, and what replaces its matches


@dataclass(frozen=True, slots=True)
class HeaderChange:
    set: tuple[tuple[str, str], ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()

    def then(self, other: HeaderChange) -> HeaderChange:
        """Returns both changes, one after the other."""
        return HeaderChange((*self.set, *other.set), (*self.add, *other.add), (*self.remove, *other.remove))


@dataclass(frozen=True, slots=True)
class Filters:
    request: HeaderChange = HeaderChange()
    response: HeaderChange = HeaderChange()
    rewrite_host: str = ""
    path: PathRewrite = PathRewrite()


@dataclass(frozen=True, slots=True)
class Backend:
    namespace: str
    service: str
    port: int | str
    weight: int = 1
    filters: Filters = Filters()
    pool: Resource | None = None  # the kind of InferencePool that the name is of, if it is no Service

    def __str__(self) -> str:
        return f"{self.pool.kind if self.pool else 'Service'} {self.namespace}/{self.service}"


@dataclass(frozen=True, slots=True)
class Redirect:
    """The client shall ask elsewhere; what is not said stays as it was asked."""

    status: int = 302
    scheme: str = ""
    host: str = ""
    port: int | None = None
    path: PathRewrite = PathRewrite()


@dataclass(frozen=True, slots=True)
class Mirror:
    """A backend that gets copies of this share of the requests, and whose answers nobody reads."""

    backend: Backend
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Retry:
    """Further attempts after a broken connection, a timeout, or an answer with one of these codes."""

    attempts: int = 0
    codes: frozenset[int] = frozenset()
    backoff: float = 0.025  # seconds before the first; twice as many before each further one


class Refusal(NamedTuple):
    """The gateway's own answer: a code of HTTP and the reason, which goes to the client."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Rule:
    """Known by its identity: what is made of a rule is kept for as long as there is the rule."""

    match: Match
    backends: tuple[Backend, ...]
    filters: Filters = Filters()
    timeout: float | None = None
    origin: str = ""
    attempt_timeout: float | None = None
    retry: Retry = Retry()
    mirrors: tuple[Mirror, ...] = ()
    redirect: Redirect | None = None
    refusal: Refusal | None = None  # in place of an answer of a backend's


def refuse(
    origin: str, unsupported: str, backends: tuple[Backend, ...] | None = None, *, is_redirect: bool = False
) -> Refusal | None:
    """Returns why a rule cannot be followed, if it cannot: it asks for what is not there, or leads nowhere."""
    if unsupported:
        return Refusal(500, f"{origin} asks for {unsupported}, which this gateway does not have")
    if backends is None or is_redirect:
        return None
    if not backends:
        return Refusal(500, f"{origin} names no backend")
    if not any(backend.weight for backend in backends):
        return Refusal(500, f"{origin} gives every backend the weight 0")
    return None

"""What routes say, compiled: which requests a rule is for, what it changes, where they go, how often and how long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum

from isvc.kube.patterns import FullMatch, Replacement
from isvc.kube.resource import Resource


class PathKind(IntEnum):
    """In order of precedence. A literal prefix ends anywhere, a prefix only between two parts of a path."""

    EXACT = 0
    PREFIX = 1
    LITERAL_PREFIX = 2
    REGEX = 3


@dataclass(frozen=True, slots=True)
class Condition:
    """A header or query parameter that has to have a value, or must not."""

    name: str
    fits: Callable[[str], bool]
    must_not: bool = False

    def holds(self, value: str | None) -> bool:
        return (value is not None and self.fits(value)) is not self.must_not


@dataclass(frozen=True, slots=True)
class Match:
    kind: PathKind = PathKind.PREFIX
    path: str = "/"
    pattern: FullMatch | None = None
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

    def accepts(self, method: str, path: str, headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
        return (
            self._accepts_path(path)
            and (not self.method or self.method == method)
            and all(condition.holds(headers.get(condition.name)) for condition in self.headers)
            and all(condition.holds(query.get(condition.name)) for condition in self.query)
        )

    def _accepts_path(self, path: str) -> bool:
        match self.kind:
            case PathKind.EXACT:
                return path == self.path
            case PathKind.PREFIX:
                return path == self.stem or path.startswith(self.stem + "/") or not self.stem
            case PathKind.LITERAL_PREFIX:
                return path.startswith(self.path)
            case PathKind.REGEX:
                return self.pattern is not None and self.pattern(path)


@dataclass(frozen=True, slots=True)
class PathRewrite:
    """Another path in place of the whole, of the prefix that a rule matched, or of what an expression finds."""

    full: str | None = None
    prefix: str | None = None
    found: Replacement | None = None

    def __call__(self, path: str, match: Match) -> str:
        if self.full is not None:
            return self.full
        if self.found is not None:
            return self.found(path)
        if self.prefix is None:
            return path
        match match.kind:
            case PathKind.PREFIX:
                return (self.prefix.rstrip("/") + path[len(match.stem) :]) or "/"
            case PathKind.LITERAL_PREFIX:
                return self.prefix + path[len(match.path) :]
            case _:  # the whole path is what matched
                return self.prefix


@dataclass(frozen=True, slots=True)
class HeaderChange:
    set: tuple[tuple[str, str], ...] = ()
    add: tuple[tuple[str, str], ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.add or self.remove)


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


@dataclass(frozen=True, slots=True)
class Rule:
    match: Match
    backends: tuple[Backend, ...]
    filters: Filters = Filters()
    timeout: float | None = None
    origin: str = ""
    attempt_timeout: float | None = None
    retry: Retry = Retry()
    mirrors: tuple[Mirror, ...] = ()
    redirect: Redirect | None = None
    unsupported: str = ""  # what the rule asks for and the gateway cannot do

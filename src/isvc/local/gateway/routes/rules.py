"""Rules of routes, in the form of the Gateway API: what Envoy's routes are made of, whichever kind of object asked.

A rule is an HTTPRouteRule with one match. What Istio has beyond is said in the same form: paths of the type
`LiteralPrefix`, which end anywhere; headers of the types `Prefix` and `Present`, and such that must `not` match;
rewrites of the type `ReplaceRegexMatch`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from isvc.kube.objects import Key, Object, dig
from isvc.kube.patterns import matches
from isvc.kube.resource import Resource

_PRECEDENCE: Final = ("Exact", "PathPrefix", "LiteralPrefix", "RegularExpression")


class Target(NamedTuple):
    """A Service, or an InferencePool of this kind."""

    key: Key
    pool: Resource | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    namespace: str
    service: str
    port: int | str
    weight: int = 1
    filters: tuple[Object, ...] = ()
    pool: Resource | None = None  # the kind of InferencePool that the name is of, if it is no Service
    refusal: str = ""  # why no request goes there

    @property
    def target(self) -> Target:
        return Target(Key(self.namespace, self.service), self.pool)


class Mirror(NamedTuple):
    """A backend that gets copies of this share of the requests, and whose answers nobody reads."""

    backend: Backend
    share: float = 1.0


class Refusal(NamedTuple):
    """The gateway's own answer: a code of HTTP and the reason, which goes to the client."""

    status: int
    reason: str


@dataclass(frozen=True, slots=True)
class Path:
    """The path of a match."""

    kind: str = "PathPrefix"
    value: str = "/"

    @classmethod
    def of(cls, match: Object) -> Path:
        path = match.get("path") or {}
        return cls(path.get("type") or "PathPrefix", path.get("value") or "/")

    @property
    def stem(self) -> str:
        return self.value.rstrip("/")

    @property
    def is_any(self) -> bool:
        return self.kind in ("PathPrefix", "LiteralPrefix") and not self.stem

    @property
    def beginning(self) -> str:
        """Returns what every path begins with that can match, a slash added to it; nothing where that is not known."""
        match self.kind:
            case "RegularExpression":
                return ""
            case "LiteralPrefix":
                return self.value
            case _:
                return f"{self.stem}/"

    def takes(self, path: str) -> bool:
        """Returns whether a request for this path can match."""
        match self.kind:
            case "Exact":
                return path == self.value
            case "RegularExpression":
                return matches(f"^(?:{self.value})$", path)
            case "LiteralPrefix":
                return path.startswith(self.value)
            case _:
                return f"{path}/".startswith(f"{self.stem}/")


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Rule:
    """Known by its identity: what is made of a rule is kept for as long as there is the rule."""

    origin: str
    match: Object  # an HTTPRouteMatch
    spec: Object  # the HTTPRouteRule
    backends: tuple[Backend, ...] = ()
    mirrors: tuple[Mirror, ...] = ()
    refusal: Refusal | None = None  # in place of an answer of a backend's

    @property
    def filters(self) -> list[Object]:
        return self.spec.get("filters") or []

    @property
    def rank(self) -> tuple[int, ...]:
        """Sorts rules by the precedence that the Gateway API has."""
        path, counted = Path.of(self.match), [len(self.match.get(key) or ()) for key in ("headers", "queryParams")]
        length = len(path.stem if path.kind == "PathPrefix" else path.value)
        return (
            _PRECEDENCE.index(path.kind),
            -length,
            0 if self.match.get("method") else 1,
            *(-each for each in counted),
        )


def service_rule(namespace: str, name: str, port: int | str, match: Object | None = None, origin: str = "") -> Rule:
    """Returns the rule by which a Service is reached."""
    return Rule(origin or f"Service {namespace}/{name}", match or {}, {}, (Backend(namespace, name, port),))


def rewritten_host(filters: Iterable[Object]) -> str:
    """Returns the host that a backend is to see, "" for the one that was asked for."""
    by_rewrite = by_header = ""
    for each in filters:
        by_rewrite = dig(each, "urlRewrite", "hostname") or by_rewrite
        for header in dig(each, "requestHeaderModifier", "set") or ():
            by_header = header["value"] if header["name"].lower() == "host" else by_header
    return by_rewrite or by_header


def path_modifier(filters: Iterable[Object]) -> Object:
    """Returns how a rewrite or redirect changes the path; nothing where none does."""
    found = (dig(each, kind, "path") for each in filters for kind in ("urlRewrite", "requestRedirect"))
    return next((each for each in found if each), {})

"""A Route's traffic: which Revision each of its targets means now, and the HTTPRoutes that send requests there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from isvc.kube.conditions import condition_of
from isvc.kube.objects import Object, dig, labels_of, name_of, namespace_of
from isvc.local.knative.kinds import ROUTE
from isvc.local.knative.workload import PORT
from isvc.serving.hosts import service_host
from isvc.serving.http_routes import http_route
from isvc.serving.knative import CLUSTER_LOCAL, VISIBILITY_LABEL

TAG_HEADER: Final = "Knative-Serving-Tag"
_DOMAIN: Final = "localhost"


class Unassigned(NamedTuple):
    """Why traffic goes nowhere (yet)."""

    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Target:
    revision: str
    percent: int
    tag: str
    latest: bool

    def entry(self, url: str) -> Object:
        """Returns the target as it is in the status of Routes and Services."""
        given = {"revisionName": self.revision, "latestRevision": self.latest, "percent": self.percent}
        return {**given, "tag": self.tag, "url": url} if self.tag else given


def assign(
    route: Object, configurations: Mapping[str, Object], revisions: Mapping[str, Object]
) -> list[Target] | Unassigned:
    """Returns every target with its Revision, or why that cannot be."""
    targets = []
    for entry in dig(route, "spec", "traffic") or ():
        name, latest = entry.get("revisionName", ""), False
        if not name:
            found = _latest_ready(entry.get("configurationName", ""), configurations)
            if isinstance(found, Unassigned):
                return found
            name, latest = found, True
        elif name not in revisions:
            return Unassigned("False", "RevisionMissing", f'Revision "{name}" referenced in traffic not found.')
        targets.append(Target(name, int(entry.get("percent") or 0), entry.get("tag") or "", latest))
    return targets


def _latest_ready(name: str, configurations: Mapping[str, Object]) -> str | Unassigned:
    configuration = configurations.get(name)
    if configuration is None:
        return Unassigned("False", "ConfigurationMissing", f'Configuration "{name}" referenced in traffic not found.')
    if ready := dig(configuration, "status", "latestReadyRevisionName"):
        return str(ready)
    condition = condition_of(configuration, "Ready")
    if condition.get("status") == "False":
        return Unassigned("False", "RevisionMissing", f'Configuration "{name}" does not have any ready Revision.')
    words = f'Configuration "{name}" is waiting for a Revision to become ready.'
    return Unassigned("Unknown", "RevisionMissing", words)


@dataclass(frozen=True, slots=True)
class Addresses:
    """The names of a Route, or of one of its tags. `port` is that of the gateway."""

    name: str
    namespace: str
    port: int
    is_local: bool

    @classmethod
    def of(cls, route: Object, port: int, tag: str = "") -> Addresses:
        name = f"{tag}-{name_of(route)}" if tag else name_of(route)
        return cls(name, namespace_of(route), port, labels_of(route).get(VISIBILITY_LABEL) == CLUSTER_LOCAL)

    @property
    def address(self) -> str:
        return f"http://{service_host(self.name, self.namespace)}"

    @property
    def url(self) -> str:
        return self.address if self.is_local else f"http://{self.name}-{self.namespace}.{_DOMAIN}:{self.port}"

    def hosts(self) -> list[str]:
        inside = [f"{self.name}.{self.namespace}{suffix}" for suffix in (".svc.cluster.local", ".svc", "")]
        return inside if self.is_local else [*inside, f"{self.name}-{self.namespace}.{_DOMAIN}"]


def http_routes(
    route: Object, targets: Sequence[Target], timeouts: Mapping[str, int], parent: Object, port: int
) -> Iterable[Object]:
    """Yields one for the Route and one for each tag. `timeouts` has the seconds that a Revision may take to answer."""
    tagged = {target.tag: target for target in targets if target.tag}
    by_header = [
        _rule([target], timeouts, [{"headers": [{"name": TAG_HEADER, "value": tag}]}]) for tag, target in tagged.items()
    ]
    shared = [target for target in targets if target.percent]
    rules = [*by_header, _rule(shared, timeouts, [{"path": {"type": "PathPrefix", "value": "/"}}])]
    yield _http_route(route, Addresses.of(route, port), rules, parent)
    for tag, target in tagged.items():
        only = [_rule([target], timeouts, [{"path": {"type": "PathPrefix", "value": "/"}}])]
        yield _http_route(route, Addresses.of(route, port, tag), only, parent)


def _http_route(route: Object, addresses: Addresses, rules: list[Object], parent: Object) -> Object:
    metadata = {"name": addresses.name, "namespace": addresses.namespace, "labels": {ROUTE: name_of(route)}}
    return http_route(metadata, addresses.hosts(), rules, [parent])


def _rule(targets: Sequence[Target], timeouts: Mapping[str, int], matches: list[Object]) -> Object:
    """Names each Revision once, however many targets mean it."""
    shares: dict[str, int] = {}
    for target in targets:
        shares[target.revision] = shares.get(target.revision, 0) + (target.percent if len(targets) > 1 else 100)
    references = [
        {"kind": "Service", "name": revision, "port": PORT, "weight": share} for revision, share in shares.items()
    ]
    longest = max((timeouts.get(revision, 0) for revision in shares), default=0)
    limit = {"timeouts": {"request": f"{longest}s"}} if longest else {}
    return {"matches": matches, "backendRefs": references, **limit}

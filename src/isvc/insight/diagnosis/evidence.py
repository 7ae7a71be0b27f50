"""All that is known about one service when it is diagnosed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from isvc.engine.plan import Child
from isvc.insight.diagnosis.finding import Finding
from isvc.kube.conditions import TRUE, conditions_of
from isvc.kube.objects import Key, Object, creation_time_of, dig, name_of, uid_of
from isvc.kube.owners import controller_of
from isvc.kube.pods import replicas_of
from isvc.kube.readiness import is_ready
from isvc.kube.resource import Resource


class Outdated(NamedTuple):
    """An object, and the fields that would change."""

    live: Object
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """A service and what belongs to it.

    `owned`     objects that it controls, directly or through others
    `pods`      its pods, the newest first
    `events`    those of its namespace
    `planned`   the children that its controller would have it have
    `refused`   why the API server would not create one of them, by kind and name
    `taken`     why one of them cannot be had: somebody else's object has its name
    `problem`   why planning came to a halt, if it did
    `config`    what is wrong with the configuration, if anything is
    `gateways`  the gateways that routes name; None for one that does not exist
    `sources`   what else the service is planned from: the configuration, its runtime, presets
    `cache`     the cache that the service's model comes from, or the service itself if it is one
    `lists`     the LocalModelNodes whose list has the model of that cache
    `unread`    kinds that this user may not read
    `outdated`  children and pods that would be something else if they were written now
    `recently`  the time after which a change is so young that what it says may pass
    """

    service: Object
    namespace: Object | None = None
    owned: Sequence[Object] = ()
    pods: Sequence[Object] = ()
    events: Sequence[Object] = ()
    planned: Sequence[Child] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    taken: Sequence[str] = ()
    problem: Finding | None = None
    suspicions: Sequence[Finding] = ()
    config: str = ""
    gateways: Mapping[Key, Object | None] = field(default_factory=dict)
    sources: Sequence[Object] = ()
    cache: Object | None = None
    lists: Sequence[Object] = ()
    unread: Collection[Resource] = ()
    outdated: Sequence[Outdated] = ()
    recently: str = "9999"

    @property
    def kind(self) -> str:
        return str(self.service.get("kind"))

    @property
    def name(self) -> str:
        return name_of(self.service)

    @property
    def is_ready(self) -> bool:
        return is_ready(self.service)

    def of_kind(self, kind: str) -> list[Object]:
        return [obj for obj in self.owned if obj.get("kind") == kind]

    def events_of(self, obj: Object) -> Iterator[Object]:
        """Yields warnings about an object, the latest first."""
        found = [
            event
            for event in self.events
            if event.get("type") == "Warning" and dig(event, "involvedObject", "uid") == uid_of(obj)
        ]
        return iter(sorted(found, key=last_time_of, reverse=True))

    def chain_to(self, obj: Object) -> tuple[str, ...]:
        """Returns the way from the service to one of the objects that it owns, link by link."""
        links = [obj]
        by_uid = {uid_of(each): each for each in self.owned}
        while (owner := by_uid.get(str((controller_of(links[-1]) or {}).get("uid")))) is not None:
            links.append(owner)
        return tuple(describe(link) for link in reversed(links))


def last_written(obj: Object) -> str:
    """Returns when somebody last wrote to an object, its status aside."""
    entries = dig(obj, "metadata", "managedFields") or ()
    times = [str(each.get("time") or "") for each in entries if not each.get("subresource")]
    return max(times, default="") or creation_time_of(obj)


def describe(obj: Object) -> str:
    """Returns an object on one line, with what it says about itself."""
    state = state_of(obj)
    return f"{obj.get('kind')} {name_of(obj)}{f': {state}' if state else ''}"


def state_of(obj: Object) -> str:
    """Returns what an object says about itself; nothing, if it has nothing to say."""
    status = obj.get("status") or {}
    match obj.get("kind"):
        case "Deployment":
            counted = f"{status.get('availableReplicas', 0)} of {replicas_of(obj)} replicas available"
            worst = next((c for c in conditions_of(obj) if _is_bad(c)), None)
            return counted + (f" ({worst.get('reason')})" if worst else "")
        case "ReplicaSet":
            return f"{status.get('readyReplicas', 0)} of {dig(obj, 'spec', 'replicas') or 0} ready"
        case "Pod":
            return f"{status.get('phase') or 'not seen by a node yet'}"
        case _:
            failing = next((c for c in conditions_of(obj) if c.get("status") == "False"), None)
            return f"{failing.get('type')} is False ({failing.get('reason')})" if failing else ""


def failing_conditions(service: Object) -> list[Object]:
    """Returns the conditions that count and are not True."""
    return [each for each in conditions_of(service) if each.get("status") != TRUE and not each.get("severity")]


def _is_bad(each: Object) -> bool:
    return each.get("status") == ("True" if each.get("type") == "ReplicaFailure" else "False")


def last_time_of(event: Object) -> str:
    """Returns the last time that an event happened."""
    return str(event.get("lastTimestamp") or event.get("eventTime") or creation_time_of(event))

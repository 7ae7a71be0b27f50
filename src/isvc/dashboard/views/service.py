"""The page of one service: its state and cause, its tree, its conditions and its events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from isvc.dashboard.views.health import Health
from isvc.dashboard.views.rows import Row, row
from isvc.dashboard.views.tree import Node, tree
from isvc.insight.diagnosis.evidence import Evidence, last_time_of
from isvc.insight.diagnosis.finding import Finding
from isvc.kube.conditions import FALSE, TRUE, conditions_of
from isvc.kube.masking import mask_text
from isvc.kube.objects import Object, dig, uid_of
from isvc.kube.resource import Resource

MOST_EVENTS: Final = 50
STOPPED: Final = "Stopped"


@dataclass(frozen=True, slots=True)
class Condition:
    """`health` is how it counts: most conditions are good when they are True, and some do not count at all."""

    health: Health
    type: str
    status: str
    reason: str
    message: str
    since: str


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of the service or of an object below it."""

    type: str
    reason: str
    message: str
    object: str
    last: str
    count: int


@dataclass(frozen=True, slots=True)
class ServicePage:
    service: Row
    findings: tuple[dict[str, Any], ...]
    tree: tuple[Node, ...]
    conditions: tuple[Condition, ...]
    events: tuple[Happening, ...]


def service_page(resource: Resource, evidence: Evidence, findings: Sequence[Finding]) -> ServicePage:
    return ServicePage(
        service=row(resource, evidence.service, findings),
        findings=tuple(_finding(each) for each in findings),
        tree=tree(evidence),
        conditions=conditions(evidence.service),
        events=events(evidence),
    )


def conditions(service: Object) -> tuple[Condition, ...]:
    """Returns conditions, the latest change first: read downwards, they are the way that the service has come."""
    found = [
        Condition(
            _counts_as(each),
            str(each.get("type")),
            str(each.get("status")),
            str(each.get("reason") or ""),
            mask_text(str(each.get("message") or "")),
            str(each.get("lastTransitionTime") or ""),
        )
        for each in conditions_of(service)
    ]
    return tuple(sorted(found, key=lambda each: (each.since, each.type == "Ready"), reverse=True))


def _counts_as(each: Object) -> Health:
    if each.get("severity") or each.get("type") == STOPPED:
        return Health.PRESENT
    return {TRUE: Health.READY, FALSE: Health.BROKEN}.get(str(each.get("status")), Health.WAITING)


def events(evidence: Evidence) -> tuple[Happening, ...]:
    """Returns the events, the latest first."""
    concerned = {uid_of(each) for each in (evidence.service, *evidence.owned, *evidence.pods)}
    found = [
        Happening(
            str(event.get("type") or ""),
            str(event.get("reason") or ""),
            mask_text(str(event.get("message") or "")),
            f"{dig(event, 'involvedObject', 'kind')} {dig(event, 'involvedObject', 'name')}",
            last_time_of(event),
            int(event.get("count") or dig(event, "series", "count") or 1),
        )
        for event in evidence.events
        if dig(event, "involvedObject", "uid") in concerned
    ]
    return tuple(sorted(found, key=lambda each: each.last, reverse=True)[:MOST_EVENTS])


def _finding(finding: Finding) -> dict[str, Any]:
    values = asdict(finding)
    values.pop("place")
    return {**values, "level": str(finding.level)}

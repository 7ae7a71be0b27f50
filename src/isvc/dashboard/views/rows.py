"""A service as one row of the overview."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from isvc.api.annotations import is_stopped
from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.insight.diagnosis.finding import Finding, Level
from isvc.insight.operations.kinds import SHORT
from isvc.kube.conditions import FALSE
from isvc.kube.masking import mask_text
from isvc.kube.objects import Object, creation_time_of, dig, name_of, namespace_of
from isvc.kube.readiness import is_ready, readiness
from isvc.kube.resource import Resource


class State(StrEnum):
    BROKEN = "not ready"
    STARTING = "starting"
    STOPPED = "stopped"
    READY = "ready"


#: What needs attention comes first.
ORDER: Final = {state: number for number, state in enumerate(State)}


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Which service: `kind` is kubectl's short name."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, resource: Resource, obj: Object) -> Place:
        return cls(SHORT[resource], namespace_of(obj), name_of(obj))

    @property
    def path(self) -> str:
        return f"/services/{self.kind}/{self.namespace or '-'}/{self.name}"

    @property
    def id(self) -> str:
        """Returns the id of the row in HTML: names have no underscores."""
        return f"service_{self.kind}_{self.namespace}_{self.name}"


@dataclass(frozen=True, slots=True)
class Row:
    """`cause` says why it is not ready, on one line."""

    place: Place
    kind: str
    state: State
    cause: str
    model: str
    url: str
    created: str

    @property
    def order(self) -> tuple[int, str, str, str]:
        return ORDER[self.state], self.place.namespace, self.place.name, self.place.kind

    def matches(self, words: Sequence[str]) -> bool:
        text = f"{self.place.namespace}/{self.place.name} {self.kind} {self.state} {self.model} {self.cause}".lower()
        return all(word in text for word in words)


def row(resource: Resource, service: Object, findings: Sequence[Finding] | None) -> Row:
    """`findings` are None while the service has not been diagnosed; the words of its status have to do then."""
    return Row(
        place=Place.of(resource, service),
        kind=resource.kind,
        state=state(service, findings),
        cause="" if is_ready(service) else cause(service, findings),
        model=_model(resource, service),
        url=str(dig(service, "status", "url") or ""),
        created=creation_time_of(service),
    )


def state(service: Object, findings: Sequence[Finding] | None) -> State:
    if is_stopped(service):
        return State.STOPPED
    if is_ready(service):
        return State.READY
    if findings:
        return State.BROKEN if findings[0].level is Level.BLOCKS else State.STARTING
    return State.BROKEN if readiness(service)["status"] == FALSE else State.STARTING


def cause(service: Object, findings: Sequence[Finding] | None) -> str:
    if findings:
        return findings[0].message
    ready = readiness(service)
    return mask_text(str(ready.get("message") or ready.get("reason") or ""))


def _model(resource: Resource, service: Object) -> str:
    if resource == LLM_INFERENCE_SERVICES:
        return str(dig(service, "spec", "model", "name") or dig(service, "spec", "model", "uri") or "")
    return str(dig(service, "spec", "predictor", "model", "modelFormat", "name") or "")

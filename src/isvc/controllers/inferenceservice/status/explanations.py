"""Why a condition of an InferenceService is not True, where KServe leaves it without a reason or a message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from isvc.api.modes import DeploymentMode
from isvc.controllers.inferenceservice.observed import Observed
from isvc.controllers.inferenceservice.planned import Planned
from isvc.controllers.inferenceservice.status.edit import (
    CANARY_READY,
    CONFIGURATION_READY,
    INGRESS_READY,
    PREDICTOR_READY,
    READY_OF,
    ROUTE_READY,
    STOPPED,
)
from isvc.engine.plan import Stop
from isvc.kube.conditions import TRUE, find
from isvc.kube.objects import Object, dig
from isvc.serving import explanations
from isvc.serving.explanations import Explanation

_KIND: Final = "InferenceService"
_COMPONENT_OF: Final = {
    condition: kind for each in (READY_OF, ROUTE_READY, CONFIGURATION_READY) for kind, condition in each.items()
}
_KNATIVE_MISSING: Final = "KnativeNotInstalled"
_MODEL_MESH: Final = "DeployedByModelMesh"
_WAITING: Final = "WaitingForDeployment", "WaitingForKnativeService", "WaitingForComponents", "WaitingForReconcile"
_REFUSED: Final = (
    "InvalidSpec",
    "InvalidPredictorSpec",
    "NoSupportingRuntime",
    "RuntimeDisabled",
    "RuntimeNotRecognized",
)
#: Reasons that only this module gives, and those of KServe that come without a message.
_ADDED: Final = frozenset({"Running", _KNATIVE_MISSING, _MODEL_MESH, *_WAITING, *_REFUSED})
_WITHOUT_MESSAGE: Final = frozenset({STOPPED, "CanariesNotReady"})


@dataclass(frozen=True, slots=True)
class Situation:
    """What a reconcile knows when it writes the status. Without a plan the service was never ours to deploy."""

    observed: Observed
    planned: Planned | None = None
    stop: Stop | None = None


def with_explanations(status: Object, situation: Situation) -> Object:
    conditions = status.get("conditions")
    if not conditions:
        return status
    return {
        **status,
        "conditions": explanations.with_explanations(conditions, lambda each: _explain(each, situation, status)),
    }


def without_explanations(status: Object) -> Object:
    conditions = status.get("conditions")
    return (
        {**status, "conditions": explanations.without_explanations(conditions, _added_fields)} if conditions else status
    )


def _added_fields(condition: Object) -> Iterable[str]:
    reason = str(condition.get("reason") or "")
    if reason in _ADDED:
        return "reason", "message"
    if reason in _WITHOUT_MESSAGE or reason.endswith((" ingress not created", " not ready")):
        return ("message",)
    return ()


def _explain(condition: Object, situation: Situation, status: Object) -> Explanation | None:
    kind, reason, name = condition["type"], condition.get("reason") or "", situation.observed.name
    if kind == STOPPED:
        return explanations.running(_KIND, name)
    if reason == STOPPED or (situation.observed.stopped and kind != explanations.READY):
        return explanations.stopped(_KIND, name)
    if situation.stop is not None and kind == situation.stop.condition:
        return explain_stop(situation.stop)
    if situation.planned is None:
        return _explain_undeployed(situation) if kind in (PREDICTOR_READY, INGRESS_READY) else None
    if component := _COMPONENT_OF.get(kind):
        return _component(component, kind, situation)
    if kind == INGRESS_READY:
        return _ingress(situation, status)
    if kind == CANARY_READY:
        waiting = [canary.name for canary in situation.planned.canaries if not canary.ready]
        return Explanation(
            reason, f"these canaries of {_KIND} {name} have no ready Deployment yet: {', '.join(waiting)}"
        )
    if kind in ("RoutesReady", "LatestDeploymentReady"):
        return Explanation(reason, f"{reason.removesuffix(' not ready')} of {_KIND} {name} is not True; it says why")
    return None


def explain_stop(stop: Stop) -> Explanation:
    """Returns why planning came to a halt, and what would mend it."""
    return Explanation(stop.reason, f"{stop.message}; {stop.remedy}" if stop.remedy else stop.message)


def _explain_undeployed(situation: Situation) -> Explanation:
    if situation.observed.is_foreign and situation.stop is not None:
        return explain_stop(situation.stop)
    return Explanation("WaitingForReconcile", "nothing was deployed for this service yet")


def _component(component: str, condition: str, situation: Situation) -> Explanation:
    assert situation.planned is not None
    deployed = situation.planned.deployed.get(component)
    if deployed is None:
        part = situation.stop.part if situation.stop else "service"
        return Explanation("WaitingForComponents", f"the {component} is deployed once the {part} can be")
    name = deployed.component.name
    if situation.observed.mode is DeploymentMode.KNATIVE:
        message = f"Knative Service {name} does not report {condition.removeprefix(component.title())} yet"
        return Explanation(
            "WaitingForKnativeService", f"{message}; if that lasts, look at Knative Serving's controller"
        )
    message = f"Deployment {name} does not report yet whether its pods are available"
    return Explanation("WaitingForDeployment", f"{message}; if that lasts, look at its pods and its events")


def _ingress(situation: Situation, status: Object) -> Explanation:
    """The ingress comes last: it waits for a component, and repeats what is known of that one."""
    name, conditions = situation.observed.name, status["conditions"]
    states = {kind: find(conditions, ready) for kind, ready in READY_OF.items()}
    waiting = next((kind for kind, state in states.items() if state and state["status"] != TRUE), None)
    if waiting is None:
        return Explanation("WaitingForComponents", f"the ingress of {name} is made once its components have an address")
    because = dig(status, "modelStatus", "lastFailureInfo", "message") if _has_failed(status) else None
    because = because or (states[waiting] or {}).get("message")
    message = f"the ingress of {name} is made once its {waiting} is ready"
    return Explanation("WaitingForComponents", f"{message}: {because}" if because else message)


def _has_failed(status: Object) -> bool:
    return bool(dig(status, "modelStatus", "transitionStatus") == "BlockedByFailedLoad")

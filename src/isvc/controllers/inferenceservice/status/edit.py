"""A status while it is being written: the old one, changed by named steps, never in place."""

from __future__ import annotations

from typing import Final

from isvc.kube.conditions import ConditionSet
from isvc.kube.objects import Object, deep_copy

PREDICTOR_READY: Final = "PredictorReady"
TRANSFORMER_READY: Final = "TransformerReady"
EXPLAINER_READY: Final = "ExplainerReady"
CANARY_READY: Final = "CanaryPredictorReady"
INGRESS_READY: Final = "IngressReady"
STOPPED: Final = "Stopped"
READY: Final = "Ready"
READY_OF: Final = {"predictor": PREDICTOR_READY, "transformer": TRANSFORMER_READY, "explainer": EXPLAINER_READY}

ROUTE_READY: Final = {
    "predictor": "PredictorRouteReady",
    "transformer": "TransformerRouteReady",
    "explainer": "ExplainerRoutesReady",
}
CONFIGURATION_READY: Final = {
    "predictor": "PredictorConfigurationReady",
    "transformer": "TransformerConfigurationReady",
    "explainer": "ExplainerConfigurationReady",
}

CONDITIONS: Final = ConditionSet((PREDICTOR_READY, INGRESS_READY))


class StatusEdit:
    def __init__(self, status: Object, now: str) -> None:
        self._now = now
        self.fields = deep_copy({key: value for key, value in status.items() if key != "conditions"})
        self.conditions = CONDITIONS.edit(status.get("conditions") or (), now)

    def result(self) -> Object:
        status = {key: value for key, value in self.fields.items() if value not in (None, "", {}, [])}
        if conditions := self.conditions.result():
            status["conditions"] = conditions
        return status

    def initialize(self) -> None:
        if self.conditions.get(READY) is None:
            self.conditions.initialize()

    def reset(self) -> None:
        """Forget everything but the mode, which a service keeps for life."""
        mode = self.fields.get("deploymentMode")
        self.fields = {"deploymentMode": mode} if mode else {}
        self.conditions = CONDITIONS.edit((), self._now)

    def component(self, kind: str) -> Object:
        """What is said about a component, which is from now on mentioned even if that is nothing."""
        components: Object = self.fields.setdefault("components", {})
        entry: Object = components.setdefault(kind, {})
        return entry

    def mark(self, condition: str, status: str, reason: str = "", message: str = "") -> None:
        mark = {
            "True": self.conditions.mark_true,
            "False": self.conditions.mark_false,
            "Unknown": self.conditions.mark_unknown,
        }[status]
        mark(condition, reason, message)

    def mark_component(self, kind: str, status: str, reason: str = "", message: str = "") -> None:
        self.mark(READY_OF[kind], status, reason, message)

    def fail_component(self, kind: str, reason: str, message: str) -> None:
        self.component(kind)
        self.mark_component(kind, "False", reason, message)

    def forget_component(self, kind: str) -> None:
        """A component that is no longer in the spec."""
        self.fields.get("components", {}).pop(kind, None)
        for conditions in (READY_OF, ROUTE_READY, CONFIGURATION_READY):
            self.conditions.clear(conditions[kind])

    def is_ready(self, condition: str) -> bool:
        return self.conditions.status(condition) == "True"

"""The status of an InferenceService while it is being written, and the names of its conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from isvc.engine.status import StatusEditor
from isvc.kube.conditions import ConditionSet
from isvc.kube.objects import Object, dig

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


class ComponentReadiness(NamedTuple):
    """Whether a component is ready (True, False or Unknown), and the URL that it was given."""

    status: str
    url: str = ""


Readiness: TypeAlias = Mapping[str, ComponentReadiness]
"""By kind of component: what the ingress of a service is planned on."""


class StatusEdit(StatusEditor):
    """The status of an InferenceService, with what is reported about its components."""

    def __init__(self, status: Object, now: str) -> None:
        super().__init__(CONDITIONS, status, now)

    def readiness(self) -> Readiness:
        """Returns how ready each component is reported to be."""
        return {
            kind: ComponentReadiness(self.conditions.status(condition), self._url(kind))
            for kind, condition in READY_OF.items()
        }

    def component(self, kind: str) -> Object:
        """Returns what is reported about a component, which is from now on mentioned even if that is nothing."""
        components: Object = self.fields.setdefault("components", {})
        entry: Object = components.setdefault(kind, {})
        return entry

    def _url(self, kind: str) -> str:
        return str(dig(self.fields, "components", kind, "url") or "")

    def mark_component(self, kind: str, status: str, reason: str = "", message: str = "") -> None:
        self.mark(READY_OF[kind], status, reason, message)

    def fail_component(self, kind: str, reason: str, message: str) -> None:
        self.component(kind)
        self.mark_component(kind, "False", reason, message)

    def forget_component(self, kind: str) -> None:
        """Drops what was reported about a component that is no longer in the spec."""
        self.fields.get("components", {}).pop(kind, None)
        for conditions in (READY_OF, ROUTE_READY, CONFIGURATION_READY):
            self.conditions.clear(conditions[kind])

"""What `kubectl get` shows of our kinds: their additionalPrinterColumns."""

from __future__ import annotations

from typing import Any

from isvc.kube.objects import Object


def _column(name: str, path: str, kind: str = "string", **more: Any) -> Object:
    return {"name": name, "type": kind, "jsonPath": path, **more}


def _condition(field: str) -> str:
    return f".status.conditions[?(@.type=='Ready')].{field}"


AGE = _column("Age", ".metadata.creationTimestamp", "date")
URL = _column("URL", ".status.url")
READY = _column("Ready", _condition("status"))
REASON = _column("Reason", _condition("reason"))
WHY = (  # with -o wide
    _column("Reason", _condition("reason"), priority=1),
    _column("Message", _condition("message"), priority=1),
)
_TRAFFIC = ".status.components.predictor.traffic"
_NEW, _PREVIOUS = "[?(@.latestRevision==true)]", "[?(@.tag=='prev')]"
SERVICE = (
    URL,
    READY,
    _column("Prev", f"{_TRAFFIC}{_PREVIOUS}.percent", "integer"),
    _column("Latest", f"{_TRAFFIC}{_NEW}.percent", "integer"),
    _column("PrevRolledoutRevision", f"{_TRAFFIC}{_PREVIOUS}.revisionName"),
    _column("LatestReadyRevision", f"{_TRAFFIC}{_NEW}.revisionName"),
    AGE,
    *WHY,
)
RUNTIME = (
    _column("Disabled", ".spec.disabled", "boolean"),
    _column("ModelType", ".spec.supportedModelFormats[*].name"),
    _column("Containers", ".spec.containers[*].name"),
    AGE,
)
ADDRESSED = (URL, READY, AGE, *WHY)
PRESET = (READY, REASON, AGE)
LLM = (URL, READY, REASON, AGE, _column("URLs", ".status.addresses[*].url", priority=1))

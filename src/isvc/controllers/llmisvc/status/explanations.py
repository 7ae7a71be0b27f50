"""Why a condition of an LLMInferenceService is not True, where KServe leaves it without a reason or a message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from isvc.controllers.llmisvc.status.conditions import PRESETS_COMBINED, ROUTER_READY, WORKLOADS_READY
from isvc.kube.conditions import TRUE, find
from isvc.kube.objects import Object
from isvc.serving.explanations import READY, Explain, Explanation

_WAITING: Final = {PRESETS_COMBINED: "WaitingForPresets", WORKLOADS_READY: "WaitingForWorkloads"}
_NOT_REPORTED: Final = "NotReported"
_ADDED: Final = frozenset({*_WAITING.values(), _NOT_REPORTED})


def added_fields(condition: Object) -> Iterable[str]:
    """Returns the fields of a condition that were added by an explanation."""
    return ("reason", "message") if condition.get("reason") in _ADDED else ()


def explain(conditions: Sequence[Object]) -> Explain:
    """What is silent waits for something that is not: presets come before workloads, and those before the router."""

    def explanation(condition: Object) -> Explanation | None:
        kind, reason = condition["type"], condition.get("reason") or _NOT_REPORTED
        if kind == READY:
            return None
        for earlier, waiting in _WAITING.items() if kind in (WORKLOADS_READY, ROUTER_READY) else ():
            found = find(conditions, earlier) or {}
            if kind != earlier and found.get("status", TRUE) != TRUE:
                return Explanation(
                    waiting, f"{kind} waits for {earlier}; {found.get('message') or 'it is not known yet'}"
                )
        return Explanation(reason, f"nothing is known about {kind} yet; if that lasts, look at the service's events")

    return explanation

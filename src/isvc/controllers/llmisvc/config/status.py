"""The status of an LLMInferenceServiceConfig: who uses it."""

from __future__ import annotations

from typing import Final

from isvc.kube.conditions import ConditionSet
from isvc.kube.objects import Key, Object, dig
from isvc.serving.status import StatusEditor

IN_USE: Final = "ConfigInUse"
CONDITIONS: Final = ConditionSet(())


def fold(raw: Object, users: list[Key], now: str, reason: str) -> Object:
    """`reason` is given for a configuration that is in use."""
    edit = StatusEditor(CONDITIONS, raw.get("status") or {}, now)
    edit.fields["observedGeneration"] = int(dig(raw, "metadata", "generation") or 0)
    edit.fields["referencedBy"] = [{"name": user.name, "namespace": user.namespace} for user in users]
    if users:
        edit.mark(IN_USE, "True", reason, f"referenced by {len(users)} LLMInferenceService(s)")
    else:
        edit.mark(IN_USE, "False", "NotInUse", "not referenced by any LLMInferenceService")
    edit.mark("Ready", "True")
    return edit.result()

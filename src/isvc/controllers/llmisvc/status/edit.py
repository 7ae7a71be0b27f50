"""The status of a service while it is being written."""

from __future__ import annotations

from isvc.controllers.llmisvc.status.conditions import CONDITIONS
from isvc.controllers.llmisvc.status.explanations import added_fields, explain
from isvc.engine.status import StatusEditor
from isvc.kube.conditions import FALSE, TRUE
from isvc.kube.objects import Object
from isvc.serving.explanations import with_explanations, without_explanations


class StatusEdit(StatusEditor):
    def __init__(self, status: Object, now: str) -> None:
        given = status.get("conditions") or ()
        super().__init__(CONDITIONS, {**status, "conditions": without_explanations(given, added_fields)}, now)
        self._before = {condition["type"]: condition for condition in given}

    def clear(self, condition: str) -> None:
        self.conditions.clear(condition)

    def sum_up(self, condition: str, others: tuple[str, ...]) -> None:
        """Marks it True unless one of the others is False: then the first of these says why."""
        for other in others:
            found = self.conditions.get(other)
            if found is not None and found.get("status") == FALSE:
                self.mark(condition, FALSE, found.get("reason", ""), found.get("message", ""))
                return
        self.mark(condition, TRUE)

    def result(self) -> Object:
        """Returns the new status.

        A condition that is what it was before did not change meanwhile, if it was also cleared.
        """
        status = super().result()
        if conditions := status.get("conditions"):
            status["conditions"] = with_explanations(map(self._with_old_time, conditions), explain(conditions))
        return status

    def _with_old_time(self, condition: Object) -> Object:
        before = self._before.get(condition["type"], {})
        if before.get("status") != condition["status"] or "lastTransitionTime" not in before:
            return condition
        return {**condition, "lastTransitionTime": before["lastTransitionTime"]}

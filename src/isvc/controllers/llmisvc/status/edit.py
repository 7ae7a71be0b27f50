"""The status of a service while it is being written."""

from __future__ import annotations

from isvc.controllers.llmisvc.status.conditions import CONDITIONS
from isvc.kube.conditions import FALSE, TRUE
from isvc.kube.objects import Object
from isvc.serving.status import StatusEditor


class StatusEdit(StatusEditor):
    def __init__(self, status: Object, now: str) -> None:
        super().__init__(CONDITIONS, status, now)

    def clear(self, condition: str) -> None:
        self.conditions.clear(condition)

    def sum_up(self, condition: str, others: tuple[str, ...]) -> None:
        """True unless one of the others is False: then the first of these says why."""
        for other in others:
            found = self.conditions.get(other)
            if found is not None and found.get("status") == FALSE:
                self.mark(condition, FALSE, found.get("reason", ""), found.get("message", ""))
                return
        self.mark(condition, TRUE)

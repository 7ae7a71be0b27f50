"""A status while it is being written: the old one, changed by named steps, never in place."""

from __future__ import annotations

from isvc.controllers.llmisvc.status.conditions import CONDITIONS
from isvc.kube.objects import Object, deep_copy


class StatusEdit:
    def __init__(self, status: Object, now: str) -> None:
        self.fields = deep_copy({key: value for key, value in status.items() if key != "conditions"})
        self.conditions = CONDITIONS.edit(status.get("conditions") or (), now)

    def mark(self, condition: str, status: str, reason: str = "", message: str = "") -> None:
        mark = {
            "True": self.conditions.mark_true,
            "False": self.conditions.mark_false,
            "Unknown": self.conditions.mark_unknown,
        }[status]
        mark(condition, reason, message)

    def clear(self, condition: str) -> None:
        self.conditions.clear(condition)

    def sum_up(self, condition: str, others: tuple[str, ...]) -> None:
        """True unless one of the others is False: then the first of these says why."""
        for other in others:
            found = self.conditions.get(other)
            if found is not None and found.get("status") == "False":
                self.mark(condition, "False", found.get("reason", ""), found.get("message", ""))
                return
        self.mark(condition, "True")

    def result(self) -> Object:
        status = {key: value for key, value in self.fields.items() if value not in (None, "", {}, [])}
        if conditions := self.conditions.result():
            status["conditions"] = conditions
        return status

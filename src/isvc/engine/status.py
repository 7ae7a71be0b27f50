"""A status while it is being written: a copy of the old one, changed step by step, never in place."""

from __future__ import annotations

from isvc.kube.conditions import FALSE, TRUE, UNKNOWN, ConditionSet
from isvc.kube.objects import Object, deep_copy


class StatusEditor:
    """Fields and conditions of one status. `now` is the time that transitions of conditions are stamped with."""

    def __init__(self, kinds: ConditionSet, status: Object, now: str) -> None:
        self._kinds = kinds
        self.now = now
        self.fields = deep_copy({key: value for key, value in status.items() if key != "conditions"})
        self.conditions = kinds.edit(status.get("conditions") or (), now)

    def initialize(self) -> None:
        """Gives the conditions their first status, unless they have one."""
        if self.conditions.get(self._kinds.happy) is None:
            self.conditions.initialize()

    def mark(self, condition: str, status: str, reason: str = "", message: str = "") -> None:
        mark = {
            TRUE: self.conditions.mark_true,
            FALSE: self.conditions.mark_false,
            UNKNOWN: self.conditions.mark_unknown,
        }[status]
        mark(condition, reason, message)

    def is_true(self, condition: str) -> bool:
        return self.conditions.status(condition) == TRUE

    def reason(self, condition: str) -> str:
        """Returns the reason that is given for a condition, if it has one."""
        return str((self.conditions.get(condition) or {}).get("reason") or "")

    def reset(self, *retained: str) -> None:
        """Forgets all conditions, and all fields but the retained ones."""
        self.fields = {field: self.fields[field] for field in retained if self.fields.get(field)}
        self.conditions = self._kinds.edit((), self.now)

    def result(self) -> Object:
        """Returns the new status; fields that say nothing are left out."""
        status = {key: value for key, value in self.fields.items() if value not in (None, "", {}, [])}
        if conditions := self.conditions.result():
            status["conditions"] = conditions
        return status

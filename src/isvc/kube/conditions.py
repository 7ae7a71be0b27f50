"""Conditions of a status, folded into one as Knative does it.

A set names the happy condition (`Ready`) and the dependents it waits for. Those carry no severity, which means
Error; all others carry severity Info and never count. False beats Unknown beats True, and of several equals the one
that changed last speaks for all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Final

from isvc.kube.objects import Object

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"
INFO: Final = "Info"


def conditions_of(obj: Object) -> list[Object]:
    """Returns the conditions of an object's status, without what is none: not every server checks what it stores."""
    status = obj.get("status")
    found = status.get("conditions") if isinstance(status, dict) else None
    items = found if isinstance(found, list) else []
    return [each for each in items if isinstance(each, dict) and isinstance(each.get("type"), str)]


def condition_of(obj: Object, kind: str) -> Object:
    """Returns what an object says of one type; {} while it says nothing."""
    return find(conditions_of(obj), kind) or {}


def is_condition_true(obj: Object, kind: str) -> bool:
    """Returns whether an object says that the condition of one type is true."""
    return is_true(conditions_of(obj), kind)


def find(conditions: Iterable[Object], kind: str) -> Object | None:
    return next((condition for condition in conditions if condition.get("type") == kind), None)


def is_true(conditions: Iterable[Object], kind: str) -> bool:
    condition = find(conditions, kind)
    return condition is not None and condition.get("status") == TRUE


def stamp(condition: Object, earlier: Iterable[Object], now: str) -> Object:
    """Returns the condition with the time of its last transition: the earlier one's while its status is the same."""
    before = find(earlier, condition["type"]) or {}
    since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
    return {**condition, "lastTransitionTime": since or now}


def set_condition(obj: Object, condition: Object, now: str) -> None:
    """Puts a condition into an object's status, in the place of the one of its type."""
    before = conditions_of(obj)
    others = [each for each in before if each["type"] != condition["type"]]
    obj.setdefault("status", {})["conditions"] = [*others, stamp(condition, before, now)]


@dataclass(frozen=True, slots=True)
class ConditionSet:
    """Which conditions a kind has. `dependents` are the ones that the happy condition waits for."""

    dependents: tuple[str, ...]
    happy: str = "Ready"

    def edit(self, conditions: Iterable[Object], now: str) -> Conditions:
        """Opens the conditions to change; `now` is the RFC 3339 time that transitions are stamped with."""
        return Conditions(self, conditions, now)

    def counts(self, kind: str) -> bool:
        return kind == self.happy or kind in self.dependents


class Conditions:
    """An edit of one status's conditions. The ones it was given are never modified; `result()` has the new list."""

    def __init__(self, kinds: ConditionSet, conditions: Iterable[Object], now: str) -> None:
        self._kinds = kinds
        self._now = now
        self._items = {condition["type"]: condition for condition in conditions if condition.get("type")}
        self._changed: list[str] = []  # in order, so that conditions stamped with the same second have one, too

    def result(self) -> list[Object]:
        return [self._items[kind] for kind in sorted(self._items)]

    def get(self, kind: str) -> Object | None:
        return self._items.get(kind)

    def status(self, kind: str) -> str:
        """Returns True, False or Unknown, which a missing condition also is."""
        return str(self._items.get(kind, {}).get("status", UNKNOWN))

    def is_happy(self) -> bool:
        return self.status(self._kinds.happy) == TRUE

    def set(self, kind: str, status: str, reason: str = "", message: str = "", severity: str | None = None) -> None:
        """Sets one condition and nothing else. Its transition time moves only if its status does."""
        if severity is None:
            severity = "" if self._kinds.counts(kind) else INFO
        old = self._items.get(kind) or {}
        since = old.get("lastTransitionTime") if old.get("status") == status else None
        said = old.get("reason", ""), old.get("message", ""), old.get("severity", "")
        if since and said == (reason, message, severity):
            return
        fields = {"lastTransitionTime": since or self._now, "message": message, "reason": reason, "severity": severity}
        self._items[kind] = {**{name: value for name, value in fields.items() if value}, "status": status, "type": kind}
        self._changed = [*(other for other in self._changed if other != kind), kind]

    def mark_true(self, kind: str, reason: str = "", message: str = "") -> None:
        self.set(kind, TRUE, reason, message)
        self.fold(kind)

    def mark_unknown(self, kind: str, reason: str = "", message: str = "") -> None:
        """Marks it, and the happy condition with it unless a dependent is False: then that has to stand."""
        self.set(kind, UNKNOWN, reason, message)
        if any(self.status(dependent) == FALSE for dependent in self._kinds.dependents):
            if self.status(self._kinds.happy) != FALSE:
                self.set(self._kinds.happy, FALSE, reason, message)
        elif kind in self._kinds.dependents:
            self.set(self._kinds.happy, UNKNOWN, reason, message)

    def mark_false(self, kind: str, reason: str = "", message: str = "") -> None:
        self.set(kind, FALSE, reason, message)
        if kind in self._kinds.dependents:
            self.set(self._kinds.happy, FALSE, reason, message)

    def clear(self, kind: str) -> None:
        self._items.pop(kind, None)

    def initialize(self) -> None:
        """Gives every missing condition of the set a first status."""
        if self._kinds.happy not in self._items:
            self.set(self._kinds.happy, UNKNOWN)
        first = TRUE if self.is_happy() else UNKNOWN
        for kind in self._kinds.dependents:
            if kind not in self._items:
                self.set(kind, first)

    def fold(self, cause: str = "") -> None:
        """Derives the happy condition from the others; `cause` is the one just marked true, if any."""
        unhappy = self._unhappy()
        if unhappy is not None:
            self.set(self._kinds.happy, unhappy["status"], unhappy.get("reason", ""), unhappy.get("message", ""))
        elif cause != self._kinds.happy:
            self.set(self._kinds.happy, TRUE)

    def _unhappy(self) -> Object | None:
        """Returns the condition that speaks for all: the latest False, else the latest Unknown, else one not there yet.

        As in Knative, any condition without severity counts here, also one the set does not name.
        """
        if not self._kinds.dependents:
            return None
        counting = [c for c in self._items.values() if not c.get("severity") and c["type"] != self._kinds.happy]
        if unhappy := [c for c in counting if c.get("status", UNKNOWN) != TRUE]:
            unhappy.sort(key=itemgetter("type"))
            unhappy.sort(key=self._recency, reverse=True)
        for status in (FALSE, UNKNOWN):
            if found := next((c for c in unhappy if c.get("status", UNKNOWN) == status), None):
                return found
        return {"status": UNKNOWN} if len(self._kinds.dependents) > len(counting) else None

    def _recency(self, condition: Object) -> tuple[int, str]:
        kind = condition["type"]
        place = self._changed.index(kind) + 1 if kind in self._changed else 0
        return place, str(condition.get("lastTransitionTime", ""))

"""Reasons and messages for conditions that are not True and would otherwise say nothing.

KServe leaves many of its conditions silent. A fold works on conditions without these additions, so that they change no
decision, and adds them at the end. An explanation names the object at fault and what would mend it, and depends on
nothing that changes by itself: it must never cause a write of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from isvc.api.annotations import STOP
from isvc.kube.conditions import FALSE, TRUE
from isvc.kube.objects import Object

READY: Final = "Ready"
STOPPED: Final = "Stopped"


class Explanation(NamedTuple):
    reason: str
    message: str


Explain = Callable[[Object], Explanation | None]


def stopped(kind: str, name: str) -> Explanation:
    """Says why nothing runs for an object that was stopped."""
    return Explanation(
        STOPPED, f'{kind} {name} is stopped; remove its annotation {STOP} or set it to "false" to start it'
    )


def running(kind: str, name: str) -> Explanation:
    """Returns what a Stopped condition says while it is False."""
    return Explanation("Running", f"{kind} {name} is not stopped")


def with_explanations(conditions: Iterable[Object], explain: Explain) -> list[Object]:
    """Gives conditions a reason and a message where they have none. Ready says what the others say, then."""
    done = [
        _complete(condition, explain(condition)) if _is_silent(condition) else condition for condition in conditions
    ]
    return [_summarize(each, done) if each["type"] == READY and _is_silent(each) else each for each in done]


def without_explanations(conditions: Iterable[Object], added: Callable[[Object], Iterable[str]]) -> list[Object]:
    """Returns the conditions without what was added to them: the fields that `added` names for each."""
    return [
        _without(condition, added(condition)) if condition.get("status") != TRUE else condition
        for condition in conditions
    ]


def _is_silent(condition: Object) -> bool:
    return condition.get("status") != TRUE and not (condition.get("reason") and condition.get("message"))


def _complete(condition: Object, explanation: Explanation | None) -> Object:
    if explanation is None:
        return condition
    said = {field: condition[field] for field in ("reason", "message") if condition.get(field)}
    return {**condition, **explanation._asdict(), **said}


def _summarize(ready: Object, conditions: list[Object]) -> Object:
    """Explains Ready in the words of a condition that says the same, or is False, or at least not True."""
    telling = (each for each in conditions if each.get("status") != TRUE and not _is_silent(each))
    others = [each for each in telling if each["type"] != READY and not each.get("severity")]
    others.sort(key=lambda each: (each["reason"] != ready.get("reason"), each["status"] != FALSE, _waits(each)))
    return _complete(ready, Explanation(others[0]["reason"], others[0]["message"])) if others else ready


def _waits(condition: Object) -> bool:
    """Returns whether the condition only waits for another one, by the reason that explanations give for that."""
    return str(condition["reason"]).startswith("WaitingFor")


def _without(condition: Object, fields: Iterable[str]) -> Object:
    left_out = set(fields)
    return {field: value for field, value in condition.items() if field not in left_out} if left_out else condition

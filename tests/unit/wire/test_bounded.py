from __future__ import annotations

from isvc.wire.bounded import Bounded, Expiring


def test_one_more_entry_drops_the_one_that_was_set_the_longest_time_ago() -> None:
    known: Bounded[str, int] = Bounded(2)
    known["a"] = 1
    known["b"] = 2
    known["a"] = 3
    assert known.setdefault("c", 4) == 4
    assert list(known.items()) == [("a", 3), ("c", 4)]


def test_an_answer_holds_for_its_time() -> None:
    now = 0.0
    answers: Expiring[str, bool | None] = Expiring(1, lambda: now)
    answers.keep("is it so?", False, seconds=10.0)
    now = 9.0
    assert answers.get("is it so?", None) is False
    now = 10.0
    assert "is it so?" not in answers
    assert answers.get("is it so?", None) is None

"""What the page says of an answer."""

from __future__ import annotations

import pytest

from isvc.dashboard.pages.rendering import render
from isvc.dashboard.pages.try_it import Answer


@pytest.mark.parametrize(
    ("answer", "heading"),
    [
        (Answer("u", "c", "{}", 0.1), ">Answer "),
        (Answer("u", "c", "u answered 500: no", 0.1, failed=True, status=500), ">Answered 500 "),
        (Answer("u", "c", "u cannot be reached", 0.1, failed=True), ">No answer "),
    ],
)
def test_an_answer_that_says_no_is_one(answer: Answer, heading: str):
    assert heading in render("answer.html", answer=answer)

"""What the page says of an answer."""

from __future__ import annotations

import pytest
from tests.growth import assert_grows_as_its_input

from isvc.dashboard.pages.rendering import pretty, render
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


def test_rows_of_numbers_are_shown_on_a_line_each():
    value = {"instances": [[1, -2.5, 1e-7], []], "text": "[ 1 ]"}
    shown = '{\n  "instances": [\n    [1, -2.5, 1e-7],\n    []\n  ],\n  "text": "[ 1 ]"\n}'
    assert pretty(value) == shown


def test_a_text_that_begins_like_numbers_is_shown_in_a_time_that_grows_with_its_length():
    assert_grows_as_its_input(lambda spaces: pretty({"text": "[" + " " * spaces}), 50)

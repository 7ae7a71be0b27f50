"""How often autoscalers are looked at: what cannot act costs next to nothing, however many there are."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from isvc.local.autoscaling.horizontal import SYNC_SECONDS, SYNC_SECONDS_WITHOUT_CHOICE, period_without_choice

NOW = datetime(2026, 11, 17, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("active", "expected"),
    [
        ({}, SYNC_SECONDS),
        ({"status": "False", "lastTransitionTime": "2026-11-17T11:59:30Z"}, SYNC_SECONDS),
        ({"status": "False", "lastTransitionTime": "2026-11-17T11:58:30Z"}, SYNC_SECONDS_WITHOUT_CHOICE),
        ({"status": "True", "lastTransitionTime": "2026-11-17T11:59:59Z"}, SYNC_SECONDS_WITHOUT_CHOICE),
    ],
)
def test_without_a_choice_it_is_looked_at_often_while_figures_may_come(active, expected):
    assert period_without_choice(active, NOW) == expected


def test_many_without_a_choice_are_looked_at_no_more_often_than_a_few_hundred():
    active = {"status": "True", "lastTransitionTime": "2026-11-17T11:59:59Z"}
    numbers = (0, 1, 250, 300, 301, 1_000, 100_000)
    periods = [period_without_choice(active, NOW, number) for number in numbers]
    assert max(number / period for number, period in zip(numbers, periods, strict=True)) == 1.0
    assert all(period % periods[0] == 0 for period in periods)  # at the same moments, for which figures are read once

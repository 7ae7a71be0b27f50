import pytest

from isvc.engine.events import failing, readiness_events


def status(ready, **others):
    conditions = {"Ready": ready, **others}
    return {"conditions": [{"type": kind, "status": value} for kind, value in conditions.items()]}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, status("True"), [("Normal", "GraphReady", "Graph [g] is Ready")]),
        (status("True"), status("True"), []),
        (status("Unknown"), status("False"), []),
        (status("True"), status("Unknown"), []),
        (status("True"), status("False"), [("Warning", "GraphNotReady", "Graph [g] is no longer Ready")]),
    ],
)
def test_an_event_is_written_when_readiness_comes_or_goes(before, after, expected):
    assert list(readiness_events("Graph", "g", before, after)) == expected


def test_readiness_may_count_as_lost_when_it_is_unknown():
    events = readiness_events("Graph", "g", status("True"), status("Unknown"), not_ready=("False", "Unknown"))
    assert [event.reason for event in events] == ["GraphNotReady"]


def test_the_event_names_the_conditions_that_fail():
    after = status("False", Routed="True", Deployed="False")
    (event,) = readiness_events("Graph", "g", status("True"), after, because=failing(after))
    assert event.message == "Graph [g] is no longer Ready because of: Ready, Deployed"

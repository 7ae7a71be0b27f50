"""What is said of a configuration that changes: one line, and a metric."""

from __future__ import annotations

import pytest

from isvc.kube.objects import Object
from isvc.programs.configuration import Report
from isvc.toolkit.metrics import Metrics


def config(name: str = "inferenceservice-config", **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": "kserve"}, "data": data}


def test_a_change_is_reported_once_and_counted_as_good_or_bad(caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    change = Report(metrics, "kserve")
    good, bad, strange = config(agent="{}"), config(agent="{"), config(agent="{}", agnet="{}")

    def valid() -> float | None:
        return metrics.registry.get_sample_value("isvc_configuration_valid")

    caplog.set_level("INFO")
    change(None, good)
    assert (valid(), caplog.messages) == (1, [])
    change(good, bad)
    change(bad, bad)
    change(config("other", a="1"), config("other", a="2"))
    assert valid() == 0
    (line,) = caplog.messages
    assert line.startswith("inferenceservice-config: agent is not JSON")
    assert line.endswith("; what was last good stays in force")
    change(bad, strange)
    assert valid() == 1
    assert caplog.messages[1:] == ["inferenceservice-config: nobody knows agnet"]
    change(strange, None)
    assert valid() == 0
    assert "is gone" in caplog.messages[-1]
    assert caplog.messages[-1].endswith("; what was last good stays in force, and nothing new is begun")


def test_a_manager_that_has_never_had_a_good_one_does_not_say_so(caplog: pytest.LogCaptureFixture) -> None:
    change = Report(Metrics(), "kserve")
    change(None, config(agent="{"))
    change(config(agent="{"), config(agent="["))
    assert [line.rpartition("; ")[2] for line in caplog.messages] == ["nothing is done before it is mended"] * 2

"""What managers tell Prometheus."""

from __future__ import annotations

from isvc.toolkit.metrics import Metrics


def test_metrics_have_no_series_that_only_say_when_they_began() -> None:
    metrics = Metrics()
    metrics.answered("/mutate", 200, 0.1)
    assert b'webhook_requests_total{code="200",webhook="/mutate"} 1.0' in metrics.text()
    assert b"_created" not in metrics.text()

"""What managers tell Prometheus."""

from __future__ import annotations

from isvc.toolkit.client.transport import Answered
from isvc.toolkit.metrics import Metrics


def test_metrics_have_no_series_that_only_say_when_they_began() -> None:
    metrics = Metrics()
    metrics.count_answer("/mutate", 200, 0.1)
    assert b'webhook_requests_total{code="200",webhook="/mutate"} 1.0' in metrics.text()
    assert b"_created" not in metrics.text()


def test_requests_are_timed_under_the_names_of_client_go() -> None:
    metrics = Metrics()
    observe = metrics.request_observer("api:443")
    for seconds in (0.001, 0.3):
        observe(Answered("GET", "/api/v1/pods?limit=1", 200, seconds, 0.0))
    text = metrics.text()
    assert b'rest_client_requests_total{code="200",host="api:443",method="GET"} 2.0' in text
    assert b'rest_client_request_duration_seconds_bucket{host="api:443",le="0.005",verb="GET"} 1.0' in text
    assert b'rest_client_request_duration_seconds_count{host="api:443",verb="GET"} 2.0' in text

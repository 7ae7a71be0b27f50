"""From what servers expose to charts."""

from __future__ import annotations

import pytest

from isvc.dashboard.views.figures import Chart, Replicas, Sample, charts, parse_metrics, sample

VLLM = """\
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m"} 3
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m"} 0.25
"""


def histogram(*counts: float) -> str:
    bounds = ("0.1", "0.2", "+Inf")
    lines = [f'request_predict_seconds_bucket{{le="{le}"}} {count}' for le, count in zip(bounds, counts, strict=True)]
    return "\n".join(("# TYPE request_predict_seconds histogram", *lines, ""))


def taken(time: float, *texts: str) -> Sample:
    return sample(time, texts)


def chart(title: str, *samples: Sample) -> dict[str, str]:
    found: dict[str, Chart] = {each.title: each for each in charts(samples)}
    return {line.name: line.last for line in found[title].lines} if title in found else {}


def test_pods_are_added_up_and_two_samples_make_a_rate():
    first = taken(0, histogram(0, 0, 0), histogram(0, 0, 0))
    second = taken(10, histogram(10, 10, 10), histogram(30, 30, 30))
    assert chart("Requests a second", first, second) == {"all": "4"}
    assert chart("Requests a second", first) == {}


def test_percentiles_are_those_between_two_samples():
    first, second = taken(0, histogram(1000, 1000, 1000)), taken(5, histogram(1050, 1100, 1100))
    assert chart("Latency", first, second) == {"median": "100 ms", "95th": "190 ms"}
    assert chart("Latency", second, second) == {}  # no requests


def test_a_server_that_started_again_has_no_negative_rate():
    assert chart("Requests a second", taken(0, histogram(9, 9, 9)), taken(5, histogram(1, 1, 1))) == {"all": "0"}


def test_queue_and_cache_of_an_llm():
    found = taken(0, VLLM)
    assert chart("Requests in the server", found) == {"waiting": "3"}
    assert chart("KV cache in use", found) == {"fullest": "25 %"}


def test_replicas_are_known_without_any_metrics():
    replicas = [Replicas(0, 2, 0, None), Replicas(10, 2, 1, None)]
    found = charts([taken(0)], replicas, now=20)
    assert [each.summary for each in found] == ["Replicas: ready 1, wanted 2"]
    assert charts([]) == ()


def test_replicas_are_a_line_with_steps_up_to_now():
    replicas = [Replicas(0, 1, 1, None), Replicas(10, 2, 1, 10)]
    counted, share = charts([], replicas, now=20)
    wanted = [tuple(map(float, each.split(","))) for each in counted.lines[1].points.split()]
    assert [x for x, _ in wanted] == [0, 150, 150, 300]
    assert wanted[0][1] == wanted[1][1] > wanted[2][1] == wanted[3][1], "upwards is more"
    assert (counted.seconds, share.lines[0].last) == (20, "10 %")


@pytest.mark.parametrize(
    "text", ["", "<html>no metrics</html>", "a{b=", "x 1 2 3 4", "\x00", "# TYPE x histogram\nx nan"]
)
def test_what_is_no_metrics_is_passed_over(text):
    parse_metrics(text)
    assert taken(0, text).buckets == {}

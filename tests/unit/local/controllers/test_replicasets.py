"""What a ReplicaSet reports of pods that are refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from isvc.kube.errors import Forbidden
from isvc.kube.objects import Object
from isvc.kube.timestamps import timestamp
from isvc.local.controllers.pods import seconds_until_available
from isvc.local.controllers.replicasets import replica_set_status

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def test_the_same_refusal_of_a_pod_with_another_name_changes_nothing() -> None:
    def after(replica_set: Object, message: str) -> Object:
        return {**replica_set, "status": replica_set_status(replica_set, [], Forbidden(message), NOW)}

    first = after({"spec": {}}, 'pods "iris-thm8q" is forbidden: exceeded quota: q')
    assert first["status"]["conditions"][0]["message"] == 'pods "iris-thm8q" is forbidden: exceeded quota: q'
    assert after(first, 'pods "iris-cvh7k" is forbidden: exceeded quota: q') == first
    other = after(first, 'pods "iris-mxh8l" is forbidden: no such account')
    assert other["status"]["conditions"][0]["message"].endswith("no such account")


def test_a_pod_is_available_some_time_after_it_is_ready_and_at_once_if_the_clock_was_set_back() -> None:
    def left(ready_since: datetime) -> float | None:
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(ready_since)}
        return seconds_until_available({"status": {"conditions": [ready]}}, {"spec": {"minReadySeconds": 30}}, NOW)

    assert left(NOW - timedelta(seconds=10)) == 20
    assert left(NOW - timedelta(minutes=1)) == left(NOW + timedelta(days=1)) == 0

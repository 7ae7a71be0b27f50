"""Which pods a Job has next."""

from __future__ import annotations

import pytest

from isvc.kube.objects import Object, annotations_of
from isvc.local.controllers.jobs.pods_wanted import change
from isvc.local.controllers.jobs.tally import INDEX, tally
from isvc.local.controllers.pod_writes import BURST


@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
def test_of_many_pods_no_more_are_thought_of_than_are_made_at_a_time(mode: str) -> None:
    template: Object = {"metadata": {}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"completionMode": mode, "completions": 2_000, "parallelism": 2_000, "template": template}
    job: Object = {"metadata": {"name": "a", "namespace": "d", "uid": "1"}, "spec": spec}
    created = change(job, [], tally(job, [])).create
    indexes = [annotations_of(pod).get(INDEX) for pod in created]
    assert indexes == ([str(index) for index in range(BURST)] if mode == "Indexed" else [None] * BURST)

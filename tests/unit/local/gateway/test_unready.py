"""Why a service does not answer: what the API server says now counts, not what was heard of it."""

from __future__ import annotations

import pytest

from isvc.api.resources import INFERENCE_SERVICES
from isvc.kube.errors import ApiError
from isvc.kube.objects import Object
from isvc.kube.resource import Resource
from isvc.local.gateway.unready import READS, why_unready
from isvc.toolkit.cache.memory import MemoryReader

URL = "http://iris-default.localhost:8080"


def service(ready: str, url: str = URL) -> Object:
    status = {"url": url, "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": {"name": "iris", "namespace": "default"}, "status": status}


class Api:
    def __init__(self, now: Object | None) -> None:
        self.now = now

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object:
        if self.now is None:
            raise ApiError("away")
        return self.now


async def say_starting(obj: Object) -> str:
    return "is starting"


STARTING = "InferenceService default/iris is starting"


@pytest.mark.parametrize(
    ("heard", "now", "said"),
    [
        (service("False"), service("True"), ""),
        (service("True"), service("False"), STARTING),
        (service("False"), None, STARTING),  # nobody answers: what was heard has to do
        (service("True"), service("True", "http://iris.default.svc.cluster.local"), None),  # no route will come
    ],
)
async def test_what_the_api_server_says_counts(heard, now, said):
    reader = MemoryReader(reads=READS)
    reader.put(INFERENCE_SERVICES, heard)
    assert await why_unready(Api(now), reader, say_starting, "iris-default.localhost", "/") == said
    assert await why_unready(Api(now), reader, say_starting, "localhost", "/serving/default/iris") == said
    assert await why_unready(Api(now), reader, say_starting, "other.localhost", "/") is None

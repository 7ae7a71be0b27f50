"""A snapshot of one service out of a cache that holds many."""

from __future__ import annotations

from typing import Any

from isvc.api.resources import INFERENCE_SERVICES
from isvc.insight.diagnosis.snapshot import of_service, reads
from isvc.kube.objects import Key
from isvc.kube.resource import CONTROLLER_REVISIONS, DEPLOYMENTS, EVENTS, PODS, REPLICA_SETS, SERVICES, Resource
from isvc.toolkit.cache.memory import MemoryReader

LABEL = "serving.kserve.io/inferenceservice"


class Cached(MemoryReader):
    """A cache whose kinds may all be read."""

    def forbids(self, resource: Resource) -> bool:
        return False


def thing(resource: Resource, name: str, owner: str = "", **rest: Any) -> tuple[Resource, dict]:
    owners = [{"uid": owner, "controller": True}] if owner else []
    metadata = {"name": name, "namespace": "team", "uid": name, "ownerReferences": owners, **rest.pop("metadata", {})}
    return resource, {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **rest}


def family(name: str) -> list[tuple[Resource, dict]]:
    return [
        thing(INFERENCE_SERVICES, name),
        thing(DEPLOYMENTS, f"{name}-d", name),
        thing(REPLICA_SETS, f"{name}-r", f"{name}-d"),
        thing(PODS, f"{name}-p", f"{name}-r"),
        thing(PODS, f"{name}-worker", "a-set-that-is-not-cached", metadata={"labels": {LABEL: name}}),
        thing(EVENTS, f"{name}-e", involvedObject={"uid": f"{name}-p"}),
    ]


def test_it_has_what_belongs_to_the_service_and_nothing_of_others():
    cache: Any = Cached([*family("iris"), *family("other")], reads=reads())
    service = cache.get(INFERENCE_SERVICES, "iris", "team")
    snapshot = of_service(cache, service)
    found = {obj["metadata"]["name"] for objects in snapshot.objects.values() for obj in objects}
    assert found == {"iris", "iris-d", "iris-r", "iris-p", "iris-worker", "iris-e"}


def test_a_name_that_somebody_else_has_taken_is_still_known():
    cache: Any = Cached([*family("iris"), thing(SERVICES, "iris", "somebody")], reads=reads())
    snapshot = of_service(cache, cache.get(INFERENCE_SERVICES, "iris", "team"))
    assert snapshot.find_all([(SERVICES, Key("team", "iris"))])
    assert snapshot.find_all([(CONTROLLER_REVISIONS, Key("team", "iris"))]) == []  # a kind that is not cached

"""An object of any form is found by its indexes, or by none, and keeps no other object from being read.

Kinds with minimal CRDs have no schema, and what was written while no webhook was there was checked by nobody.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import pytest
from tests.fuzzing import examples, seeds
from tests.manual_clock import ManualClock
from tests.unit.engine.test_every_kind import CASES, World

from isvc.api.resources import LLM_INFERENCE_SERVICES
from isvc.kube.objects import Object
from isvc.serving.environment import Environment
from isvc.toolkit.client import Client
from isvc.toolkit.context import Context
from isvc.toolkit.controller import Controller

JUNK: tuple[Any, ...] = (None, 1, 1.5, True, "x", "", [], {}, [None], [1], ["a"], [{}], {"a": None}, [[]], "://", -1)
SPEC: Object = {
    "model": {"name": "m", "lora": {"adapters": [{"name": "l", "uri": "hf://a/l"}]}},
    "baseRefs": [{"name": "base"}],
    "inferenceService": "iris",
    "nodes": {"root": {"routerType": "Sequence", "steps": [{"serviceName": "iris", "nodeName": "next"}]}},
    "localModels": [{"modelName": "m", "sourceModelUri": "gs://a", "nodeGroup": "g"}],
    "router": {"gateway": {"refs": [{"name": "g"}]}, "route": {"http": {"refs": [{"name": "r"}]}}},
}
STATUS: Object = {
    "url": "http://a.test/b",
    "conditions": [{"type": "Ready", "status": "True"}],
    "components": {"predictor": {"url": "http://a.test", "latestReadyRevision": "a"}},
    "annotations": {"config": "kserve-config"},
    "appliedConfigs": [{"name": "base", "namespace": "kserve"}],
    "addresses": [{"url": "http://a", "models": [{"name": "publishers/ns/models/m"}]}],
    "address": {"url": "http://a"},
    "modelStatus": {"m": "ModelDownloaded"},
    "referencedBy": [{"name": "a"}],
    "copies": {"total": 1},
}


def spoil(value: Any, dice: random.Random) -> Any:
    """Returns the value with junk in random places."""
    if dice.random() < 0.15:
        return dice.choice(JUNK)
    if isinstance(value, dict):
        return {key: spoil(each, dice) for key, each in value.items()}
    return [spoil(each, dice) for each in value] if isinstance(value, list) else value


def controller_of(name: str) -> Controller:
    world = World(CASES[name], {})
    return CASES[name].make(Context(Client(world.server), world.objects, world, ManualClock()), Environment())


def spoilt(name: str) -> Iterable[Object]:
    metadata = {"name": "it", "namespace": "ns", "uid": "u", "resourceVersion": "1"}
    for seed in seeds(examples(300)):
        dice = random.Random(seed)
        obj = {"metadata": metadata, "spec": spoil(SPEC, dice), "status": spoil(STATUS, dice)}
        yield CASES[name].resource.typed(obj)


@pytest.mark.parametrize("name", CASES)
def test_indexes_take_objects_of_any_form(name: str) -> None:
    resource = CASES[name].resource
    indexers = [
        each
        for case in CASES
        for read in controller_of(case).reads
        if read.resource == resource
        for each in read.indexers.values()
    ]
    assert indexers or resource != LLM_INFERENCE_SERVICES
    for obj in spoilt(name):
        for indexer in indexers:
            assert all(isinstance(value, str) for value in indexer(obj))


@pytest.mark.parametrize("name", CASES)
def test_watches_take_objects_of_any_form(name: str) -> None:
    watches = [each for each in controller_of(name).watches if each.resource == CASES[name].resource]
    before: Object | None = None
    for obj in spoilt(name):
        for watch in watches:
            list(watch.keys(before, obj))
        before = obj

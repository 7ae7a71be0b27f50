"""Which services are reconciled when something that they share changes."""

from __future__ import annotations

from typing import Any

import pytest

from isvc.api.resources import INFERENCE_SERVICES
from isvc.controllers.inferenceservice.affected import Affected
from isvc.kube.objects import Key, Object
from isvc.kube.resource import Resource
from isvc.serving.config import Config
from isvc.toolkit.cache.memory import MemoryReader


def holding(*services: dict[str, Any]) -> MemoryReader:
    return MemoryReader((INFERENCE_SERVICES, each) for each in services)


EXPLAINED = {"metadata": {"name": "explained", "namespace": "ns"}, "spec": {"explainer": {"art": {}}}}
PLAIN = {"metadata": {"name": "plain", "namespace": "ns"}, "spec": {"predictor": {}}}


def settings(name: str = "inferenceservice-config", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


@pytest.mark.parametrize(
    ("before", "after", "concerned"),
    [
        (settings(ingress="{}"), settings(ingress="{ }"), ["explained", "plain"]),
        (settings(explainers="{}"), settings(explainers="{ }"), ["explained"]),
        (settings(logger="{}"), settings(logger="{ }"), []),
        (settings(ingress="{}"), settings(ingress="{}"), []),
        (None, settings(ingress="{}"), ["explained", "plain"]),
        (settings("bundle"), settings("bundle", ca="new"), ["explained", "plain"]),
        (settings("other"), settings("other", ca="new"), []),
    ],
)
def test_a_change_of_settings_concerns_those_that_the_changed_sections_are_about(
    before: dict[str, Any] | None, after: dict[str, Any], concerned: list[str]
) -> None:
    config = Config.parse({"storageInitializer": '{"caBundleConfigMapName": "bundle"}'})
    affected = Affected(holding(EXPLAINED, PLAIN), lambda: config)
    assert [key.name for key in affected.by_settings(before, after)] == concerned


class NamesOnly(MemoryReader):
    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        raise AssertionError(f"{resource} {name} was decoded")

    def list(self, resource: Resource, namespace: str = "") -> list[Object]:
        raise AssertionError(f"all {resource} were decoded")


def test_settings_that_concern_all_services_are_told_by_names_alone() -> None:
    affected = Affected(NamesOnly([(INFERENCE_SERVICES, EXPLAINED), (INFERENCE_SERVICES, PLAIN)]), lambda: None)
    changed = affected.by_settings(settings(deploy="{}"), settings(deploy="{ }", explainers="{}"))
    assert list(changed) == [Key("ns", "explained"), Key("ns", "plain")]

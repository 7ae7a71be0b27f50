"""What `kubectl explain` shows of built-in kinds: the same as on a real kube-apiserver."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.differential.normal import differences
from tests.wire import Wire

GROUPS = ("api/v1", "apis/apps/v1", "apis/batch/v1", "apis/autoscaling/v2", "apis/networking.k8s.io/v1")


def shown(wire: Wire, group: str) -> dict[str, Any]:
    """Definition to its description, and descriptions and values of its fields."""
    answer = wire.ask("GET", f"/openapi/v3/{group}")[1]
    document = json.loads(answer["text"]) if "text" in answer else answer
    return {
        name: {
            "": schema.get("description"),
            **{field: (each.get("description"), each.get("enum")) for field, each in _fields(schema).items()},
        }
        for name, schema in document["components"]["schemas"].items()
    }


def _fields(schema: dict[str, Any]) -> dict[str, Any]:
    return schema.get("properties") or {}


@pytest.mark.parametrize("group", GROUPS)
def test_kinds_and_fields_are_described_alike(both: tuple[Wire, Wire], group: str) -> None:
    real, ours = (shown(wire, group) for wire in both)
    assert len(ours) > 10
    assert not differences({name: real[name] for name in ours if name in real}, {n: ours[n] for n in ours if n in real})
    assert not ours.keys() - real.keys()

"""What `kubectl explain` shows: the same as on a real kube-apiserver."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from isvc.api.kinds.crds import crds
from tests.differential.normal import differences
from tests.waiting import until
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


async def test_kinds_of_ours_are_explained_alike_though_our_document_says_what_is_repeated_once(
    both: tuple[Wire, Wire], tmp_path: Path
) -> None:
    texts = []
    for wire in both:
        for each in crds(described=True):
            wire.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", each)
        await until(partial(is_published, wire), "the server to publish its schema")
        texts.append([explain(wire, tmp_path, *words) for words in EXPLAINED])
    assert texts[0] == texts[1]
    assert "<Object>" in texts[0][0]


EXPLAINED = [
    ("inferenceservices",),
    ("inferenceservices", "--recursive"),
    ("inferenceservices.spec.predictor.containers",),
    ("inferenceservices.spec.transformer.affinity.nodeAffinity",),
]


def is_published(wire: Wire) -> bool:
    return wire.ask("GET", "/openapi/v3/apis/serving.kserve.io/v1beta1")[0] == 200


def explain(wire: Wire, folder: Path, *words: str) -> str:
    kubeconfig, token = folder / "none", wire.headers["Authorization"].removeprefix("Bearer ")
    kubeconfig.touch()
    server = [f"--kubeconfig={kubeconfig}", f"--server=https://{wire.host}", f"--token={token}"]
    command = ["kubectl", *server, "--insecure-skip-tls-verify", f"--cache-dir={folder / wire.host}", "explain", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout

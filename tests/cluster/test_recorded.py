"""Objects that a real kube-apiserver was given once, and what it answered: defaults filled in, or why not.

Every line of recorded.jsonl is a request and its answer. `RECORD=1 pytest tests/cluster/test_recorded.py
--cluster=kube-apiserver` writes the answers anew.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from tests.differential.normal import differences, normal
from tests.servers import Cluster
from tests.wire import Wire

RECORDED = Path(__file__).with_name("recorded.jsonl")
NAMESPACE = "$NAMESPACE"
#: Given out by each server as it likes.
ALLOCATED = {"clusterIP", "clusterIPs", "nodePort"}


def ask(wire: Wire, namespace: str, request: dict[str, Any]) -> dict[str, Any]:
    sent = json.loads(json.dumps(request).replace(NAMESPACE, namespace))
    code, answer = wire.ask("POST", sent["path"], sent["body"])
    if answer["kind"] == "CustomResourceDefinition":
        del answer["status"]  # filled in by controllers, now or later
    text = json.dumps(_without_allocated(normal(answer))).replace(namespace, NAMESPACE)
    return {"code": code, "answer": json.loads(text)}


def _without_allocated(value: Any) -> Any:
    if isinstance(value, dict):
        headless = value.get("clusterIP") == "None"
        return {key: _without_allocated(item) for key, item in value.items() if headless or key not in ALLOCATED}
    return [_without_allocated(item) for item in value] if isinstance(value, list) else value


def test_recorded_requests_get_their_recorded_answers(cluster: Cluster):
    wire = Wire(cluster.url, cluster.token)
    namespace = f"recorded-{uuid.uuid4().hex[:8]}"
    assert wire.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})[0] == 201
    records = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    answers = [ask(wire, namespace, record) for record in records]
    wire.close()
    if os.environ.get("RECORD"):
        lines = [json.dumps({**record, **answer}) for record, answer in zip(records, answers, strict=True)]
        RECORDED.write_text("\n".join(lines) + "\n")
        return
    found = {}
    for record, answer in zip(records, answers, strict=True):
        expected = {"code": record["code"], "answer": record["answer"]}
        different = differences(expected, answer)
        if different:
            found[json.dumps(record["body"])] = different
    assert not found

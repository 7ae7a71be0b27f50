"""Built-in admission on the embedded API server and on a real one: the same requests get the same answers.

Runs with --cluster=kube-apiserver only, as it needs both. The requests are in `differential/admission.yaml`.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.differential.normal import differences, normal
from tests.cluster.differential.wire import Wire

SCENARIOS: dict[str, list[list[Any]]] = yaml.safe_load(
    (Path(__file__).parent / "differential" / "admission.yaml").read_text()
)
MERGE = "application/merge-patch+json"
SETTLED_SECONDS = 20.0
REPEATED = ("TRY", "AWAIT")


def ask(wire: Wire, method: str, path: str, body: Any) -> tuple[int, Any]:
    """The answer with its warnings; TRY is a create that leaves nothing behind, AWAIT a get of what takes a moment."""
    content_type = MERGE if method == "PATCH" else "application/json"
    if method == "TRY":
        method, path = "POST", f"{path}?dryRun=All"
    if method == "AWAIT":
        method = "GET"
    code, answer = wire.ask(method, path, body, content_type)
    if (answer.get("spec") or {}).get("clusterIPs", ["None"]) != ["None"]:
        answer["spec"] |= {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}
    answer = json.loads(re.sub(r"\b(generated|kube-api-access)-\w{5}", r"\1-SUFFIX", json.dumps(answer)))
    return code, normal({"answer": answer, "warnings": wire.warnings})


def compared(both: tuple[Wire, Wire], method: str, path: str, body: Any) -> list[str]:
    (real_code, real), (our_code, ours) = (ask(wire, method, path, body) for wire in both)
    return [f"{real_code} {real} != {our_code} {ours}"] if real_code != our_code else differences(real, ours)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_admission_is_the_same(both: tuple[Wire, Wire], scenario: str) -> None:
    namespace = f"admission-{uuid.uuid4().hex[:10]}"
    for wire in both:
        assert wire.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})[0] == 201
    for number, (method, path, *rest) in enumerate(SCENARIOS[scenario]):
        body = json.loads(json.dumps(rest[0]).replace("NAMESPACE", namespace)) if rest else None
        path = path if path.startswith("/") else f"/api/v1/namespaces/NAMESPACE/{path}"
        path = path.replace("NAMESPACE", namespace)
        found = compared(both, method, path, body)
        deadline = time.monotonic() + SETTLED_SECONDS
        while (
            found and method in REPEATED and time.monotonic() < deadline
        ):  # a real server has to hear of what was made
            time.sleep(0.1)
            found = compared(both, method, path, body)
        assert not found, f"{number}: {method} {path}\n" + "\n".join(found)

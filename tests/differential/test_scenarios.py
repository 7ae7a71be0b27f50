"""Admission and definitions on the embedded API server and on a real one: the same requests get the same answers.

Runs with --cluster=kube-apiserver only, as it needs both. The requests are in `admission.yaml` and
`definitions.yaml`.
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

from tests.differential.normal import differences, normal
from tests.wire import Wire

FOLDER = Path(__file__).parent
SCENARIOS: dict[str, list[list[Any]]] = {
    name: steps
    for file in ("admission.yaml", "definitions.yaml")
    for name, steps in yaml.safe_load((FOLDER / file).read_text()).items()
}
MERGE = "application/merge-patch+json"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
SETTLED_SECONDS = 60.0
#: What changes nothing may be asked again: a real server needs a moment to hear of what was made before.
REPEATED = ("GET", "TABLE", "TRY", "DRY-PATCH")


def ask(wire: Wire, method: str, path: str, body: Any) -> tuple[int, Any]:
    """The answer with its warnings. Methods beyond those of HTTP: TRY is a create that leaves nothing behind, DRY-PATCH
    a patch that does not, and TABLE a get for people to read."""
    accept = TABLE if method == "TABLE" else "application/json"
    path = f"{path}?dryRun=All" if method in ("TRY", "DRY-PATCH") else path
    method = {"TRY": "POST", "DRY-PATCH": "PATCH", "TABLE": "GET"}.get(method, method)
    content_type = MERGE if method == "PATCH" else "application/json"
    code, answer = wire.ask(method, path, body, content_type, accept)
    if (answer.get("spec") or {}).get("clusterIPs", ["None"]) != ["None"]:
        answer["spec"] |= {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}
    if answer.get("kind") == "CustomResourceDefinition":
        del answer["metadata"]["managedFields"]  # kube-apiserver's of the status, which comes later
        if method in ("POST", "PATCH") and not path.endswith("/status"):
            del answer["status"]  # of which a get tells more
        else:
            conditions = answer["status"]["conditions"] or []  # none yet, on a server that has just heard of it
            answer["status"]["conditions"] = sorted(conditions, key=lambda condition: condition["type"])
    if answer.get("kind") == "APIResourceList":
        answer["resources"].sort(key=lambda resource: resource["name"])
    for column in answer.get("columnDefinitions") or ():
        del column["description"]
    answer = json.loads(re.sub(r"\b(generated|kube-api-access)-\w{5}", r"\1-SUFFIX", json.dumps(answer)))
    return code, normal({"answer": answer, "warnings": wire.warnings})


def compared(both: tuple[Wire, Wire], method: str, path: str, body: Any) -> list[str]:
    (real_code, real), (our_code, ours) = (ask(wire, method, path, body) for wire in both)
    return [f"{real_code} {real} != {our_code} {ours}"] if real_code != our_code else differences(real, ours)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_both_servers_answer_the_same(both: tuple[Wire, Wire], scenario: str) -> None:
    namespace = f"admission-{uuid.uuid4().hex[:10]}"
    for wire in both:
        assert wire.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})[0] == 201
    for number, (method, path, *rest) in enumerate(SCENARIOS[scenario]):
        body = json.loads(json.dumps(rest[0]).replace("NAMESPACE", namespace)) if rest else None
        path = path if path.startswith("/") else f"/api/v1/namespaces/NAMESPACE/{path}"
        path = path.replace("NAMESPACE", namespace)
        found = compared(both, method, path, body)
        deadline = time.monotonic() + SETTLED_SECONDS
        while found and method in REPEATED and time.monotonic() < deadline:
            time.sleep(0.1)
            found = compared(both, method, path, body)
        assert not found, f"{number}: {method} {path}\n" + "\n".join(found)
